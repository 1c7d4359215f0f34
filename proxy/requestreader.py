"""Reads the HTTP/1.1 requests of one connection, within limits. Knows syntax; not what is asked, nor how to answer.

An `Upgrade` is an offer, which a server may overlook (RFC 9110 §7.8): the request is whole only with its body, and
others may follow it. httptools takes every such request for one without a body, so its head is read twice, the second
time without the offer; its length is judged by the same rules both times. Only a WebSocket goes on in another protocol.
"""

from __future__ import annotations

from typing import NamedTuple

import httptools

from tapeproxy.proxy.bodyspool import BodySpool
from tapeproxy.tapes.largebodies import LargeBody
from tapeproxy.tapes.records import Headers

MAX_HEAD = 1 << 18
MAX_BODY = 1 << 29
_PER_HEADER = 4
"""Bytes that a header has besides name and value."""


class Incoming(NamedTuple):
    """A request as it came. `url` is the request target; `keep`: the client will use its connection again."""

    method: bytes
    url: bytes
    headers: Headers
    body: bytes | LargeBody
    http10: bool
    keep: bool


class UnreadableError(Exception):
    """What came is not a request, or too large a one. `line` is what is known of its first line."""

    def __init__(self, what: str, line: str, *, too_large: bool = False) -> None:
        self.what, self.line, self.too_large = what, line, too_large
        super().__init__(what)


class RequestReader:
    """Feed it bytes; whole requests gather in `requests`, also those before an error.

    `reading`: a request has begun and is not whole. `expects`: it waits for a 100 Continue.
    """

    _began_now: bool  # in the bytes that are being fed
    _again: bytes | None = None  # a head without its offer of another protocol, to be read once more
    _sent: Headers | None = None  # the headers of that head as they came

    def __init__(self) -> None:
        self.requests: list[Incoming] = []
        self.reading = False
        self._parser = httptools.HttpRequestParser(self)
        self._clear()

    def feed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Take bytes; returns those that come after a request to switch protocols. Raises UnreadableError."""
        rest = self._feed(data)
        while self._again is not None:
            again, self._again = self._again, None
            self._parser = httptools.HttpRequestParser(self)
            self._feed(again)
            if not rest:
                break
            rest = self._feed(rest)
        return rest

    def _feed(self, data: bytes | memoryview) -> bytes | memoryview:
        self.reading = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return memoryview(data)[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            # httptools wraps what a callback raises.
            cause = error.__context__
            if not isinstance(cause, _TooLargeError) and isinstance(error, httptools.HttpParserCallbackError):
                raise cause or error from None
            too_large = isinstance(cause, _TooLargeError)
            raise UnreadableError(str(cause if too_large else error), self._line(), too_large=too_large) from None
        if self.reading and not self._head_done:
            self._count_head(len(data))
        return b""

    def _count_head(self, size: int) -> None:
        """httptools keeps an unfinished header to itself, so the bytes are counted as they come."""
        if self._began_now:  # and other requests may have come before it
            self._began_now = False
            return
        self._fed += size
        if self._fed > MAX_HEAD:
            raise UnreadableError(_HEAD_TOO_LARGE, self._line(), too_large=True)

    def _line(self) -> str:
        if not self._url:  # the parser's first method stands for none
            return "? "
        return f"{(self._parser.get_method() or b'?').decode('latin-1')} {self._url[:MAX_HEAD].decode('latin-1')}"

    def _clear(self) -> None:
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: BodySpool | None = None
        self._head_size = self._fed = 0
        self._head_done = False
        self._began_now = False
        self.expects = False

    # --- the parser's callbacks --------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._clear()
        self._began_now = True

    def on_url(self, url: bytes) -> None:
        self._grow_head(len(url))
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow_head(len(name) + len(value) + _PER_HEADER)
        if not self._head_done:  # a trailer says nothing about what is asked
            self._headers.append((name, value))

    def _grow_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD:
            raise _TooLargeError(_HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._head_done = True
        if self._sent is not None:
            self._headers, self._sent = list(self._sent), None
        expected = [value for name, value in self._headers if len(name) == 6 and name.lower() == b"expect"]
        self.expects = any(value.lower() == b"100-continue" for value in expected)

    def on_body(self, data: bytes) -> None:
        if self._body is None:
            self._body = BodySpool(tuple(self._headers))
        if self._body.size + len(data) > MAX_BODY:
            raise _TooLargeError(f"the request's body is larger than {MAX_BODY} bytes")
        self._body.take(data)

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser.should_upgrade() and parser.get_method() != b"CONNECT" and not self._is_websocket():
            self._again, self._sent = self._plain_head(), tuple(self._headers)
            return
        self.reading = self.expects = False
        body = b"" if self._body is None else self._body.finish()
        keep = parser.should_keep_alive() and not parser.should_upgrade()
        http10 = parser.get_http_version() == "1.0"
        self.requests.append(
            Incoming(parser.get_method(), self._url, tuple(self._headers), body, http10=http10, keep=keep)
        )
        self._clear()

    def _is_websocket(self) -> bool:
        """Whether another protocol follows; a body that is announced comes before it."""
        names = [name.lower() for name, _ in self._headers]
        asked = [value.strip().lower() for name, value in self._headers if name.lower() == b"upgrade"]
        return asked == [b"websocket"] and b"content-length" not in names and b"transfer-encoding" not in names

    def _plain_head(self) -> bytes:
        version = self._parser.get_http_version().encode()
        headers = [b"%b: %b\r\n" % (name, value) for name, value in self._headers if name.lower() != b"upgrade"]
        return b"%b %b HTTP/%b\r\n%b\r\n" % (self._parser.get_method(), self._url, version, b"".join(headers))


class _TooLargeError(Exception):
    """Raised out of a parser callback."""


_HEAD_TOO_LARGE = f"the request's head is larger than {MAX_HEAD} bytes"
