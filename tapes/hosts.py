"""Which hosts can only be this machine, as their name or number says. Pure: nothing is resolved."""

import functools
import ipaddress
import re

MCP_STDIO = ".mcp-stdio.invalid"
"""How the host of an exchange ends that stands for a message to an MCP server on stdio: there is no such host."""
_NAMED = ("127.0.0.1", "::1")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
_LONGEST_NAME = 253


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


def is_mcp_stdio(host: str) -> bool:
    """Whether a host stands for an MCP server on stdio."""
    return host.endswith(MCP_STDIO)


def split_authority(authority: bytes) -> tuple[str, int] | None:
    """The host and port of a tunnel; None when it is no address and no name that DNS and a certificate could have."""
    host, _, digits = authority.decode("latin-1").rpartition(":")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) <= 0xFFFF):
        return None
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        return (host, int(digits)) if _is_ipv6(host) else None
    labels = host.removesuffix(".").split(".")
    named = len(host) <= _LONGEST_NAME and all(_LABEL.fullmatch(label) for label in labels)
    return (host, int(digits)) if named else None


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).scope_id is None
    except ValueError:
        return False
