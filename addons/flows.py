"""From mitmproxy's messages to what a record says of them. Pure; knows HTTP, not tapes or sockets."""

import functools
import ipaddress
from typing import TYPE_CHECKING

from tapeproxy.tapes.records import Framing, Headers

if TYPE_CHECKING:
    from mitmproxy.http import Request, Response

_PORTS = {"http": 80, "https": 443}


def url_of(request: "Request") -> bytes:
    """The absolute URL that the client asked for, its path and query byte for byte.

    The host is the one that the client would have connected to; a Host header may say otherwise.
    """
    host = host_bytes(request.host)
    port = b"" if request.port == _PORTS.get(request.scheme) else b":%d" % request.port
    return request.scheme.encode() + b"://" + host + port + request.data.path


def host_bytes(host: str) -> bytes:
    """A host as it stands in a URL: IPv6 in brackets, other scripts in their ASCII form."""
    if ":" in host:
        return b"[" + host.encode() + b"]"
    return host.encode() if host.isascii() else host.encode("idna")


@functools.lru_cache(1024)
def is_loopback(host: str) -> bool:
    """True when a host can only be this machine, as its name or number says; nothing is resolved."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def declared_length(headers: Headers) -> int | None:
    """The Content-Length of a message, None when it has none or none that is a number."""
    values = [value for name, value in headers if name.lower() == b"content-length"]
    return int(values[0]) if values and values[0].isdigit() else None


def framing_of(request: "Request", response: "Response") -> Framing:
    """What delimits a response's body (RFC 9112, 6.3), and so what the boundaries between chunks mean."""
    status = response.status_code
    if request.method.upper() == "HEAD" or status < 200 or status in (204, 304):
        return "none"
    headers = response.headers.fields
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        return "chunked" if codings[-1].endswith(b"chunked") else "close"
    return "close" if declared_length(headers) is None else "length"
