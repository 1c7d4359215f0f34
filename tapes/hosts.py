"""Which hosts can only be this machine, as their name or number says. Pure: nothing is resolved."""

import functools
import ipaddress

_NAMED = ("127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """True for localhost and names under it (RFC 6761, 6.3), 127.0.0.0/8 as four numbers, and ::1.

    `host` without brackets. A dot at its end, capitals, and an IPv4 address inside IPv6 make no difference.
    """
    return bool(loopback_literals(host))


@functools.lru_cache(1024)
def loopback_literals(host: str) -> tuple[str, ...]:
    """The addresses to try for a loopback host, in order; none when `host` is another machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return _NAMED
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return ()
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if mapped is not None:
        address = mapped
    if not address.is_loopback:
        return ()
    return ("::1",) if address.version == 6 else (str(address),)
