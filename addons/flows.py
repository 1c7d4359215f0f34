"""From mitmproxy's messages to what a record says of them. Pure; knows HTTP, not tapes or sockets."""

from typing import TYPE_CHECKING

from tapeproxy.tapes.records import Framing, Headers

if TYPE_CHECKING:
    from mitmproxy.http import Request, Response

MAX_BODY = 32 << 20
"""Bytes of request body in one record: as control characters in JSON it stays below the reader's line limit."""
PASSED = "tapeproxy.passed"
"""In a flow's metadata: it is not taped."""
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


def version_of(message: "Request | Response") -> str:
    """The version of HTTP as a record has it."""
    return "HTTP/2" if message.is_http2 else message.http_version


def is_grpc(headers: Headers) -> bool:
    """Whether a request is a call of gRPC, in which both sides may speak at once."""
    return any(name.lower() == b"content-type" and value.startswith(b"application/grpc") for name, value in headers)


def declared_length(headers: Headers) -> int | None:
    """The Content-Length of a message, None when it has none, none that is a number, or several that differ."""
    value = agreed([value for name, value in headers if name.lower() == b"content-length"])
    return int(value) if value is not None and value.isdigit() else None


def agreed(values: list[bytes]) -> bytes | None:
    """What a header says that stands there more than once, or as a list, and says the same each time (RFC 9110, 8.6).

    None when it is not there or says different things.
    """
    said = {part.strip().lower() for value in values for part in value.split(b",")}
    return said.pop() if len(said) == 1 else None


def framing_of(request: "Request", response: "Response") -> Framing:
    """What delimits a response's body (RFC 9112, 6.3), and so what the boundaries between chunks mean."""
    status = response.status_code
    if request.method.upper() == "HEAD" or status < 200 or status in (204, 304):
        return "none"
    headers = response.headers.fields
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        return "chunked" if codings[-1].endswith(b"chunked") else "close"
    if declared_length(headers) is not None:
        return "length"
    return "chunked" if response.is_http2 else "close"
