"""From a taped exchange to the bytes of an HTTP/1.1 answer. Pure: knows framing, not sockets or clocks.

Status, reason, header order and duplicates, chunk boundaries, trailers and the way it ended are those of the tape. Only
what would contradict the body is put right: a length that redaction changed, a framing header that HTTP/1 needs. What
could not come from an HTTP server at all is not rendered: `flaw` names it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Headers, Response

type Finish = Literal["keep", "close", "cut", "reset", "hold", "switch"]
"""What happens after the last byte: the connection lives on, is closed in order, is dropped, is reset, stays open until
the client leaves, or becomes a WebSocket."""

_FRAMING_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
SWITCHED = 101
"""The status with which a connection becomes a WebSocket, or something else that is no HTTP."""
_BODILESS = frozenset({SWITCHED, 204, 304})
_INTERNAL_ERROR = 2
"""Of HTTP/2 (RFC 9113, 7)."""
_FOLD = re.compile(rb"[ \t]*\r?\n[ \t]+")
_BREAKS = re.compile(rb"[\r\n\0]")
_NOT_A_NAME = re.compile(rb"[\r\n\0:]")
ENDINGS: dict[str, Finish] = {"client-gone": "hold", "upstream-cut": "cut", "reset": "reset", "connect-error": "cut"}


class Part(NamedTuple):
    """Bytes for the client, due `due` nanoseconds after its request had arrived."""

    due: int
    data: bytes


class Answer(NamedTuple):
    """An answer ready to be sent. `parts` are rendered as they are taken, once; `size`: the body's bytes in all.

    `delay`: nanoseconds by which it is late on purpose, whatever the pace. `code`: of HTTP/2, with which the stream is
    reset, where it is the stream and not the connection that ends. `is_due`: whether a part may be sent, of an answer
    that depends on what the client goes on to say. `talk`: of one that finishes in a `switch`, what is spoken then.
    """

    parts: Iterator[Part]
    finish: Finish
    size: int = 0
    delay: int = 0
    code: int | None = None
    is_due: Callable[[Part], bool] | None = None
    talk: object = None


def flaw(exchange: Exchange) -> str | None:
    """What of the taped response is not HTTP/1.1, in words; None when it can be rendered.

    A tape may be edited or hostile: what is written on it must not become other answers on the wire.
    """
    response = exchange.response
    if response is None:
        return None
    if not 200 <= response.status <= 999 and response.status != SWITCHED:
        return f"its status is {response.status}"
    if _BREAKS.search(response.reason):
        return "its reason phrase has a line break"
    trailers = exchange.end.trailers if exchange.end is not None else ()
    for headers in (response.headers, trailers, *(headers for _, headers in response.informational)):
        if (bad := _bad_header(headers)) is not None:
            return f"its header {bad[:80].decode('latin-1')!r} has bytes that no header can have"
    for status, _ in response.informational:
        if not 100 <= status < 200 or status == SWITCHED:
            return f"{status} is no status of an informational response"
    if response.framing == "none" and not _bodiless(exchange, response) and not _says_empty(response.headers):
        return "it has no body where HTTP must have one"
    return None


def render(exchange: Exchange, *, http10: bool = False) -> Answer:
    """Render the answer of `exchange`, in which there is no `flaw`, for a client of HTTP/1.0 without chunked framing.

    An exchange whose end the tape does not know is cut off where the tape stops; of HTTP/2 its stream alone, for others
    had their part of the same connection.
    """
    response = exchange.response
    how = exchange.end.how if exchange.end is not None else "upstream-cut"
    code = exchange.end.code if exchange.end is not None else None
    if exchange.end is None and exchange.request.http == "HTTP/2":
        code = _INTERNAL_ERROR
    if response is None:
        return dropped(ENDINGS.get(how, "cut"), code)
    chunked = response.framing == "chunked" and not http10
    parts = _parts(exchange, response, chunked, complete=how == "complete", http10=http10)
    size = sum([chunk.size for chunk in exchange.chunks])
    if how != "complete":
        return Answer(parts, ENDINGS[how], size, code=code)
    delimited = chunked or response.framing in ("length", "none") or _bodiless(exchange, response)
    return Answer(parts, "keep" if delimited and _says_keep(response) else "close", size)


def dropped(finish: Finish = "cut", code: int | None = None) -> Answer:
    """An answer without a byte: the connection ends, or the stream."""
    return Answer(iter(()), finish, code=code)


def head(status: int, reason: bytes, headers: Headers, http: bytes = b"HTTP/1.1") -> bytes:
    """The bytes of a response head. A value that was folded into lines is one line (RFC 9112, 5.2)."""
    lines = [b"%s %d %s\r\n" % (http, status, reason)]
    lines += [name + b": " + value + b"\r\n" for name, value in headers]
    lines.append(b"\r\n")
    text = b"".join(lines)
    if text.count(b"\n") == len(lines):
        return text
    return head(status, reason, tuple((name, _unfolded(value)) for name, value in headers), http)


def _parts(exchange: Exchange, response: Response, chunked: bool, *, complete: bool, http10: bool) -> Iterator[Part]:
    start = exchange.request.t
    for status, headers in response.informational if not http10 else ():
        yield Part(max(response.t - start, 0), head(status, b"", headers))
    headers = _headers(exchange, response, chunked, complete=complete)
    due = max(response.t - start, 0)
    version = b"HTTP/1.0" if response.http == "HTTP/1.0" else b"HTTP/1.1"
    yield Part(due, head(response.status, response.reason, headers, version))
    if _bodiless(exchange, response):
        return
    for chunk in exchange.chunks:
        due = max(due, chunk.t - start) if chunk.t is not None else due
        # A chunk of no bytes would end the body.
        if data := chunk.data:
            yield Part(due, b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
    if chunked and complete:
        trailers = exchange.end.trailers if exchange.end is not None else ()
        due = max(due, exchange.end.t - start) if exchange.end is not None else due
        yield Part(
            due, b"".join((b"0\r\n", *(name + b": " + _unfolded(value) + b"\r\n" for name, value in trailers), b"\r\n"))
        )


def _headers(exchange: Exchange, response: Response, chunked: bool, *, complete: bool) -> Headers:
    headers = response.headers
    names = {name.lower() for name, _ in headers}
    if response.framing == "none" or _bodiless(exchange, response):
        return headers
    if chunked:
        if b"content-length" not in names and _says_chunked(headers):
            return headers
        return (*_without(headers, _FRAMING_HEADERS), (b"transfer-encoding", b"chunked"))
    if b"transfer-encoding" in names:
        headers = _without(headers, frozenset({b"transfer-encoding"}))
    if response.framing != "length" or not complete:
        return headers
    length = b"%d" % sum([chunk.size for chunk in exchange.chunks])
    said = [value for name, value in headers if name.lower() == b"content-length"]
    if not said:
        return (*headers, (b"content-length", length))
    if said == [length]:
        return headers
    return tuple((n, length) if n.lower() == b"content-length" and v != length else (n, v) for n, v in headers)


def _without(headers: Headers, names: frozenset[bytes]) -> Headers:
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def _bodiless(exchange: Exchange, response: Response) -> bool:
    """Whatever its headers say, there is no body (RFC 9112, 6.3)."""
    return response.status in _BODILESS or exchange.request.method.upper() == b"HEAD"


def _unfolded(value: bytes) -> bytes:
    return _FOLD.sub(b" ", value) if b"\n" in value else value


def _bad_header(headers: Headers) -> bytes | None:
    """The name of the first header that would not be one header on the wire."""
    for name, value in headers:
        if not name or _NOT_A_NAME.search(name) or _BREAKS.search(_unfolded(value)):
            return name
    return None


def _says_keep(response: Response) -> bool:
    said = b",".join([value for name, value in response.headers if name.lower() == b"connection"]).lower()
    return b"keep-alive" in said if response.http == "HTTP/1.0" else b"close" not in said


def _says_chunked(headers: Headers) -> bool:
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    return bool(codings) and codings[-1].lower().rstrip().endswith(b"chunked")


def _says_empty(headers: Headers) -> bool:
    return any(name.lower() == b"content-length" and value == b"0" for name, value in headers)
