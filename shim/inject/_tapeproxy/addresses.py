"""What an address of the internet is: loopback, number or name. Knows how they are written; asks nobody."""

from __future__ import annotations

import os

_LOOPBACK_NAMES = ("", "localhost", "ip6-localhost", "ip6-loopback")


def parse(place: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT; port 0 where it says none."""
    host, _, port = place.strip().rpartition(":")
    return host.strip("[]").lower(), int(port) if port.isdigit() else 0


def text_of(host: str | bytes | bytearray | None) -> str:
    """A host as `socket` takes it (str, bytes, None), in the form in which hosts are compared."""
    text = host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else host or ""
    return text.lower().rstrip(".")


def own_names() -> tuple[str, str]:
    """What this machine calls itself: servers ask for that name's address when they start (socket.getfqdn)."""
    name = os.uname().nodename.lower() if hasattr(os, "uname") else ""
    return name, name.partition(".")[0]


def is_loopback(host: str) -> bool:
    """Whether a host's name or address means this machine's loopback; connecting to 0.0.0.0 does."""
    if host in _LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    address = packed(host)
    if address is None:
        return False
    if len(address) == 4:
        return address[0] == 127 or not any(address)
    return not any(address[:15]) and address[15] <= 1


def packed(host: str) -> bytes | None:
    """The bytes of an IPv4 or IPv6 address, None for a name. IPv4 within IPv6 is IPv4."""
    import _socket

    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            address = _socket.inet_pton(family, host.partition("%")[0])
        except (OSError, ValueError):
            continue
        return address[12:] if address.startswith(b"\0" * 10 + b"\xff\xff") else address
    return None
