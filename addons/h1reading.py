"""Guards for what mitmproxy's HTTP/1 misreads, or refuses to read though clients and servers do. Knows mitmproxy 12.3.

Each is put in by `h1fixes.apply` where its probe shows the fault. What mitmproxy cannot read is shown to it in a form
that it can; what it then hands on has the bytes as they came.
"""

import re
from collections.abc import Callable, Generator
from typing import Any
from urllib.parse import quote_from_bytes

from h11._readers import Http10Reader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.connection import Client, Connection
from mitmproxy.http import Headers as MitmHeaders
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    HttpEvent,
    RequestHeaders,
    RequestProtocolError,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Server

from tapeproxy.addons.flows import agreed

type Commands = Generator[commands.Command, Any, None]
type Refused = Callable[[bytes, str, tuple[str, int] | None, Client], None]

_ABSOLUTE = re.compile(rb"([^\s]+ +[A-Za-z]+://[^/\s\x80-\xff]+)(/[^\s]*)( +HTTP/[^\r\n]*)")
_RAW = re.compile(rb"[\x80-\xff]+")
_FRAMING = (b"content-length", b"transfer-encoding")
_LINES = tuple(b"\r\n" + name + b":" for name in _FRAMING)


class RawPath(Http1Server):
    """Lets raw bytes above ASCII stand in the path of an absolute URL, as they may in a path alone."""

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        path = self._show_quoted() if isinstance(event, events.DataReceived) else None
        for command in super().read_headers(event):
            if path is not None and isinstance(command, ReceiveHttp) and isinstance(command.event, RequestHeaders):
                command.event.request.data.path = path
                path = None
            yield command

    def _show_quoted(self) -> bytes | None:
        """Percent-encode the path in the buffer once its line is whole; returns it as it was, None if all is well."""
        line, end, rest = bytes(self.buf).partition(b"\n")
        found = _ABSOLUTE.match(line) if end and not line.isascii() else None
        if found is None or b"\n\r\n" not in end + rest:
            return None  # with half a head in it, this is called again
        quoted = _RAW.sub(lambda raw: quote_from_bytes(raw[0]).encode(), found[2])
        self.buf = ReceiveBuffer()
        self.buf += found[1] + quoted + line[found.end(2) :] + end + rest
        return found[2]


class Refusals(Http1Server):
    """Tells of each request that mitmproxy answers with an error page of its own."""

    refused: Refused
    _line = b""

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        self._line = bytes(self.buf).lstrip(b"\r\n").partition(b"\r\n")[0] or self._line
        page = False
        for command in super().read_headers(event):
            if isinstance(command, commands.SendData):
                page = True
            elif page and isinstance(command, commands.Log):  # of a head that can't be read: `client: reason`
                self._tell(command.message.partition(": ")[2])
            elif page and isinstance(command, ReceiveHttp) and isinstance(command.event, RequestProtocolError):
                self._tell(command.event.message)
            yield command

    def send(self, event: HttpEvent) -> Commands:
        for command in super().send(event):
            if isinstance(event, ResponseProtocolError) and isinstance(command, commands.SendData):
                self._tell(event.message)
            yield command

    def _tell(self, reason: str) -> None:
        type(self).refused(self._line, reason, self.context.server.address, self.context.client)


class DoubledFraming(Http1Client):
    """Reads an answer that says its length, or that it is chunked, more than once, as HTTP clients do."""

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        fields = self._show_once() if isinstance(event, events.DataReceived) else None
        for command in super().read_headers(event):
            if fields is not None and isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                # A copy: this connection goes on by the headers that it can read.
                response = command.event.response = command.event.response.copy()
                response.headers = MitmHeaders(fields)
                fields = None
            yield command

    def _show_once(self) -> list[tuple[bytes, bytes]] | None:
        """Leave one of each framing header in the buffered head; returns all as they came, None if all is well."""
        head, end, rest = bytes(self.buf).partition(b"\r\n\r\n")
        if not end or b"\r\n " in head or b"\r\n\t" in head or not _is_doubled(head.lower()):
            return None
        status, *lines = head.split(b"\r\n")
        if any(b":" not in line for line in lines):
            return None  # refused, as it is elsewhere
        fields = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        kept = [f for f in fields if f[0].lower() not in _FRAMING]
        for wanted in _FRAMING:
            values = [value for name, value in fields if name.lower() == wanted]
            if values:
                kept.append((wanted, agreed(values) or b", ".join(values)))
        self.buf = ReceiveBuffer()
        self.buf += b"\r\n".join([status, *(name + b": " + value for name, value in kept)]) + end + rest
        return fields


class ListedLength(Http1Server):
    """Closes the connection after a Content-Length that is a list: some clients then read up to the close."""

    def send(self, event: HttpEvent) -> Commands:
        ended = self.response if isinstance(event, ResponseEndOfMessage) else None
        lengths = ended.headers.get_all("content-length") if ended else []
        yield from super().send(event)
        if any("," in length for length in lengths):
            yield commands.CloseConnection(self.conn)
            self.state = self.done


def _is_doubled(head: bytes) -> bool:
    # Asked of every response, so by `find`: a regular expression takes five times as long.
    for line in _LINES:
        at = head.find(line)
        if at >= 0 and (b"," in head[at:].split(b"\r\n", 2)[1] or head.find(line, at + 2) >= 0):
            return True
    return False


class ResetBodies(Http1Client):
    """Makes an error of a body that only the connection's end delimits and that ends in a TCP reset."""

    was_reset: Callable[[Connection], bool]

    def read_body(self, event: events.Event) -> Commands:
        cut = isinstance(event, events.ConnectionClosed) and isinstance(self.body_reader, Http10Reader)
        if not cut or self.stream_id is None or not type(self).was_reset(self.conn):
            yield from super().read_body(event)
            return
        yield commands.CloseConnection(self.conn)
        yield ReceiveHttp(
            ResponseProtocolError(self.stream_id, "the server reset the connection", ErrorCode.GENERIC_SERVER_ERROR)
        )


class NoBody(Http1Server):
    """Sends no last chunk after a response that has no body whatever its headers say."""

    def send(self, event: HttpEvent) -> Commands:
        bodiless = self.response is not None and self.response.status_code in (204, 304)
        for command in super().send(event):
            if not (bodiless and isinstance(command, commands.SendData) and command.data == b"0\r\n\r\n"):
                yield command
