"""Guards for what mitmproxy's HTTP/1 does wrong, each put in only where a probe shows the fault. Knows mitmproxy 12.3.

1. Chunked trailers raise NotImplementedError inside the protocol engine, and the exchange hangs.
2. An informational response (103 Early Hints) is taken for the final one, and the exchange hangs.

mitmproxy's protocol layers do no I/O, so a probe feeds one some bytes and looks at what comes out. The third suspect,
`Expect: 100-continue`, needs no guard: mitmproxy answers it by itself, as it must, because it forwards a request only
when it has all of it.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.http import Headers as MitmHeaders
from mitmproxy.http import Request, Response
from mitmproxy.net.http import http1
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layers
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import SendHttp
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    HttpEvent,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Connection, Http1Server

from tapeproxy.tapes.records import Headers

type Commands = Generator[commands.Command, Any, None]

_INFORMATIONAL = "tapeproxy_informational"
_TRAILERS = (RequestTrailers, ResponseTrailers)
_LAST_CHUNK = b"0\r\n\r\n"
# 101 is final: the connection then speaks another protocol.
_STARTS_INFORMATIONAL = re.compile(rb"HTTP/1\.\d 1(?!01)\d\d\b")


def informational_of(response: Response) -> tuple[tuple[int, Headers], ...]:
    """The informational responses that came before this one, as (status, headers)."""
    seen: tuple[tuple[int, Headers], ...] = vars(response).get(_INFORMATIONAL, ())
    return seen


def apply() -> tuple[str, ...]:
    """Put in the guards that are needed, for this whole process; returns the names of those in force."""
    server: list[type[Http1Server]] = []
    client: list[type[Http1Client]] = []
    names: list[str] = []
    if loses_trailers():
        names.append("trailers")
        server.append(_TrailersToClient)
        client.append(_TrailersToServer)
    if stalls_on_informational():
        names.append("informational")
        client.append(_Informational)
    # HttpLayer makes its connections from these two names; the original classes stay as they are.
    for name, fixes, original in (("Http1Server", server, Http1Server), ("Http1Client", client, Http1Client)):
        setattr(layers.http, name, type(name, tuple(fixes), {}) if fixes else original)
    return tuple(names)


def loses_trailers() -> bool:
    """True when this mitmproxy cannot read the trailers of a chunked response."""
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n"
    try:
        return not any(isinstance(event, ResponseTrailers) for event in _answers(raw))
    except NotImplementedError:
        return True


def stalls_on_informational() -> bool:
    """True when this mitmproxy takes a 103 for the final response."""
    raw = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    finals = [event.response.status_code for event in _answers(raw) if isinstance(event, ResponseHeaders)]
    return 200 not in finals


def _answers(raw: bytes) -> Iterator[HttpEvent]:
    """What mitmproxy's original client layer makes of a server's bytes in answer to a GET."""
    context = Context(Client(peername=("", 0), sockname=("", 0), timestamp_start=0), Options())
    context.server = Server(address=("", 0))
    context.server.state = ConnectionState.OPEN
    connection = Http1Client(context)
    for event in (
        events.Start(),
        RequestHeaders(1, Request.make("GET", "http://probe/"), end_stream=True),
        RequestEndOfMessage(1),
        events.DataReceived(context.server, raw),
    ):
        for command in connection.handle_event(event):
            if isinstance(command, ReceiveHttp):
                yield command.event


class _TrailerReader:
    """h11's reader for chunked bodies, which takes the trailers off the end event that mitmproxy chokes on."""

    def __init__(self, reader: ChunkedReader) -> None:
        self._reader = reader
        self.trailers: MitmHeaders | None = None

    def __call__(self, buf: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        event = self._reader(buf)
        if isinstance(event, h11.EndOfMessage) and event.headers:
            self.trailers = MitmHeaders(event.headers.raw_items())
            return h11.EndOfMessage()
        return event

    def read_eof(self) -> h11.EndOfMessage:
        return self._reader.read_eof()


class _Trailers(Http1Connection):
    """Reads and writes trailers. The engine above knows them from HTTP/2: they come just before the end."""

    _came: type[RequestTrailers | ResponseTrailers]
    _end: type[RequestEndOfMessage | ResponseEndOfMessage]
    _to_send: MitmHeaders | None = None

    def read_body(self, event: events.Event) -> Commands:
        if type(self.body_reader) is ChunkedReader:
            # mitmproxy calls a reader and asks it for `read_eof`, nothing else.
            self.body_reader = _TrailerReader(self.body_reader)  # type: ignore[assignment]
        reader = self.body_reader
        for command in super().read_body(event):
            if (
                isinstance(reader, _TrailerReader)
                and isinstance(command, ReceiveHttp)
                and isinstance(command.event, self.ReceiveEndOfMessage)
                and reader.trailers is not None
            ):
                trailers, reader.trailers = reader.trailers, None
                yield ReceiveHttp(self._came(command.event.stream_id, trailers))
            yield command

    def send(self, event: HttpEvent) -> Commands:
        if isinstance(event, _TRAILERS):
            self._to_send = event.trailers
            return
        if not isinstance(event, self._end) or self._to_send is None:
            yield from super().send(event)
            return
        trailers, self._to_send = self._to_send, None
        for command in super().send(event):
            # Only a chunked body has a last chunk; any other loses its trailers, as HTTP/1 has no place for them.
            if isinstance(command, commands.SendData) and command.data == _LAST_CHUNK:
                command = commands.SendData(command.connection, b"0\r\n" + bytes(trailers) + b"\r\n")
            yield command


class _TrailersToClient(_Trailers, Http1Server):
    _came = RequestTrailers
    _end = ResponseEndOfMessage


class _TrailersToServer(_Trailers, Http1Client):
    _came = ResponseTrailers
    _end = RequestEndOfMessage


class _Informational(Http1Client):
    """Passes informational responses on to the client as they come, and notes them on the final response."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._seen: list[tuple[int, Headers]] = []

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        if isinstance(event, events.DataReceived) and self.request is not None:
            yield from self._pass_informational(self.request)
            if not self.buf:
                return
        for command in super().read_headers(event):
            if isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                vars(command.event.response)[_INFORMATIONAL] = tuple(self._seen)
                self._seen.clear()
            yield command

    def _pass_informational(self, request: Request) -> Commands:
        while _STARTS_INFORMATIONAL.match(bytes(self.buf)) and (lines := self.buf.maybe_extract_lines()):
            try:
                response = http1.read_response_head([bytes(line) for line in lines])
            except ValueError:
                continue  # a broken one is as good as none
            self._seen.append((response.status_code, response.headers.fields))
            if self.stream_id is not None and request.is_http11:
                yield SendHttp(ResponseHeaders(self.stream_id, response), self.context.client)
