"""From a taped exchange to the bytes of an HTTP/1.1 answer. Pure: knows framing, not sockets or clocks.

Status, reason, header order and duplicates, chunk boundaries, trailers and the way it ended are those of the tape. Only
what would contradict the body is put right: a length that redaction changed, a framing header that HTTP/1 needs.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Headers, Response

type Finish = Literal["keep", "close", "cut", "reset", "hold"]
"""What happens after the last byte: the connection lives on, is closed in order, is dropped, is reset, or stays open
until the client leaves."""

_FRAMING_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
_ENDINGS: dict[str, Finish] = {"client-gone": "hold", "upstream-cut": "cut", "reset": "reset", "connect-error": "cut"}


class Part(NamedTuple):
    """Bytes for the client, due `due` nanoseconds after its request had arrived."""

    due: int
    data: bytes


class Answer(NamedTuple):
    """An answer ready to be sent. `parts` are rendered as they are taken, once; `size`: the body's bytes in all."""

    parts: Iterator[Part]
    finish: Finish
    size: int = 0


def render(exchange: Exchange, *, http10: bool = False) -> Answer:
    """Render the answer of `exchange`, for a client of HTTP/1.0 without chunked framing.

    An exchange whose end the tape does not know is cut off where the tape stops.
    """
    response = exchange.response
    how = exchange.end.how if exchange.end is not None else "upstream-cut"
    if response is None:
        return dropped(_ENDINGS.get(how, "cut"))
    chunked = response.framing == "chunked" and not http10
    parts = _parts(exchange, response, chunked, complete=how == "complete")
    size = sum([len(chunk.data) for chunk in exchange.chunks])
    if how != "complete":
        return Answer(parts, _ENDINGS[how], size)
    delimited = chunked or response.framing in ("length", "none")
    return Answer(parts, "keep" if delimited and not _says_close(response.headers) else "close", size)


def dropped(finish: Finish = "cut") -> Answer:
    """An answer without a byte: the connection ends."""
    return Answer(iter(()), finish)


def head(status: int, reason: bytes, headers: Headers) -> bytes:
    """The bytes of a response head."""
    lines = [b"HTTP/1.1 %d %s\r\n" % (status, reason)]
    lines += [name + b": " + value + b"\r\n" for name, value in headers]
    lines.append(b"\r\n")
    return b"".join(lines)


def _parts(exchange: Exchange, response: Response, chunked: bool, *, complete: bool) -> Iterator[Part]:
    start = exchange.request.t
    for status, headers in response.informational:
        yield Part(max(response.t - start, 0), head(status, b"", headers))
    headers = _headers(exchange, response, chunked, complete=complete)
    due = max(response.t - start, 0)
    yield Part(due, head(response.status, response.reason, headers))
    if response.framing == "none":
        return
    for chunk in exchange.chunks:
        due = max(due, chunk.t - start) if chunk.t is not None else due
        # A chunk of no bytes would end the body.
        if chunk.data:
            yield Part(due, b"%x\r\n%b\r\n" % (len(chunk.data), chunk.data) if chunked else chunk.data)
    if chunked and complete:
        trailers = exchange.end.trailers if exchange.end is not None else ()
        due = max(due, exchange.end.t - start) if exchange.end is not None else due
        yield Part(due, b"".join((b"0\r\n", *(name + b": " + value + b"\r\n" for name, value in trailers), b"\r\n")))


def _headers(exchange: Exchange, response: Response, chunked: bool, *, complete: bool) -> Headers:
    headers = response.headers
    names = {name.lower() for name, _ in headers}
    if response.framing == "none":
        return headers
    if chunked:
        if b"transfer-encoding" in names and b"content-length" not in names:
            return headers
        return (*_without(headers, _FRAMING_HEADERS), (b"transfer-encoding", b"chunked"))
    if b"transfer-encoding" in names:
        headers = _without(headers, frozenset({b"transfer-encoding"}))
    if response.framing != "length" or not complete:
        return headers
    length = b"%d" % sum([len(chunk.data) for chunk in exchange.chunks])
    said = [value for name, value in headers if name.lower() == b"content-length"]
    if not said:
        return (*headers, (b"content-length", length))
    if said == [length]:
        return headers
    return tuple((n, length) if n.lower() == b"content-length" and v != length else (n, v) for n, v in headers)


def _without(headers: Headers, names: frozenset[bytes]) -> Headers:
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def _says_close(headers: Headers) -> bool:
    return any(name.lower() == b"connection" and b"close" in value.lower() for name, value in headers)
