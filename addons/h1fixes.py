"""Guards for what mitmproxy's HTTP/1 does wrong, each put in only where a probe shows the fault. Knows mitmproxy 12.3.

1. Chunked trailers raise NotImplementedError inside the protocol engine, and the exchange hangs.
2. An informational response (103 Early Hints) is taken for the final one, and the exchange hangs.
3. A 204 or 304 that says it is chunked is sent on with a last chunk, which the client takes for its next answer.
4. A close-delimited body that ends in a TCP reset passes for whole.
5. An answer that says its length (or that it is chunked) twice is refused; so is raw UTF-8 in an absolute URL.
6. A request that mitmproxy refuses, with a page of its own, leaves no trace.

mitmproxy's protocol layers do no I/O, so a probe feeds one some bytes and looks at what comes out. One more suspect,
`Expect: 100-continue`, needs no guard: mitmproxy answers it by itself, as it must, because it forwards a request only
when it has all of it.
"""

import re
from collections.abc import Callable, Generator, Iterator
from typing import Any

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.connection import Client, Connection, ConnectionState, Server
from mitmproxy.http import Headers as MitmHeaders
from mitmproxy.http import Request, Response
from mitmproxy.net.http import http1
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layers
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import SendHttp
from mitmproxy.proxy.layers.http._base import HttpConnection, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    HttpEvent,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Connection, Http1Server

from tapeproxy.addons.early import Early
from tapeproxy.addons.h1reading import DoubledFraming, ListedLength, NoBody, RawPath, Refusals, Refused, ResetBodies

type Commands = Generator[commands.Command, Any, None]

_RESET = "tapeproxy_reset"
_TRAILERS = (RequestTrailers, ResponseTrailers)
_LAST_CHUNK = b"0\r\n\r\n"
# 101 is final: the connection then speaks another protocol.
_STARTS_INFORMATIONAL = re.compile(rb"HTTP/1\.\d 1(?!01)\d\d\b")


class StreamReset(str):
    """mitmproxy's message about a stream that was reset, with the error code of its frame and who sent it."""

    code: int
    by_client: bool

    def __new__(cls, text: str, code: int, *, by_client: bool) -> "StreamReset":
        self = super().__new__(cls, text)
        self.code, self.by_client = code, by_client
        return self


def ends_in_reset(request: Request, code: int) -> None:
    """Say that the stream of this request, in HTTP/2, is reset with this code when the answer to it breaks off."""
    vars(request)[_RESET] = code


def apply(
    was_reset: Callable[[Connection], bool] = lambda _connection: False,
    refused: Refused = lambda _line, _reason, _server, _client: None,
) -> tuple[str, ...]:
    """Put in the guards that are needed, for this whole process; returns the names of those in force.

    `was_reset` tells whether an upstream connection ended in a reset. `refused` is called with the first line of each
    request that mitmproxy answers by itself, the reason, the server that the connection leads to, if any, and the
    client.
    """
    needed = {name: guards for name, probe, *guards in _GUARDS if probe()}
    server = [*(guard for guards in needed.values() for guard in guards if issubclass(guard, Http1Server)), Refusals]
    client = [guard for guards in needed.values() for guard in guards if issubclass(guard, Http1Client)]
    client.append(_ResetsOfStreams)
    told = {"refused": staticmethod(refused), "was_reset": staticmethod(was_reset)}
    # HttpLayer makes its connections from these two names; the original classes stay as they are.
    for name, fixes, original in (("Http1Server", server, Http1Server), ("Http1Client", client, Http1Client)):
        setattr(layers.http, name, type(name, tuple(fixes), told) if fixes else original)
    return tuple(needed)


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


def ends_what_has_no_body() -> bool:
    """True when this mitmproxy sends a last chunk after a 204."""
    connection = Http1Server(probe_context())
    response = Response.make(204, b"", {"Transfer-Encoding": "chunked"})
    run(connection, events.Start(), events.DataReceived(connection.conn, b"GET http://a/ HTTP/1.1\r\n\r\n"))
    sent = run(connection, ResponseHeaders(1, response), ResponseEndOfMessage(1))
    return any(isinstance(command, commands.SendData) and command.data == _LAST_CHUNK for command in sent)


def takes_a_cut_for_an_end() -> bool:
    """True when this mitmproxy ends a body that nothing else delimits by the connection's end: it can't know better."""
    connection = _asked()
    answer = events.DataReceived(connection.conn, b"HTTP/1.1 200 OK\r\n\r\nbody")
    seen = run(connection, answer, events.ConnectionClosed(connection.conn))
    return any(isinstance(event, ResponseEndOfMessage) for event in received(seen))


def refuses_doubled_framing() -> bool:
    """True when this mitmproxy refuses a response that says twice how long it is."""
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"
    return not any(isinstance(event, ResponseHeaders) for event in _answers(raw))


def refuses_raw_paths() -> bool:
    """True when this mitmproxy refuses raw UTF-8 in the path of an absolute URL."""
    connection = Http1Server(probe_context())
    line = events.DataReceived(connection.conn, b"GET http://a/\xc3\xa9 HTTP/1.1\r\n\r\n")
    return not any(isinstance(event, RequestHeaders) for event in received(run(connection, events.Start(), line)))


def _answers(raw: bytes) -> Iterator[HttpEvent]:
    """What mitmproxy's original client layer makes of a server's bytes in answer to a GET."""
    connection = _asked()
    yield from received(run(connection, events.DataReceived(connection.conn, raw)))


def _asked() -> Http1Client:
    """mitmproxy's original client layer, once it has sent a GET."""
    connection = Http1Client(probe_context())
    get = RequestHeaders(1, Request.make("GET", "http://probe/"), end_stream=True)
    run(connection, events.Start(), get, RequestEndOfMessage(1))
    return connection


def probe_context() -> Context:
    """A connection of which both ends are open, for a probe."""
    context = Context(Client(peername=("", 0), sockname=("", 0), timestamp_start=0), Options())
    context.client.state = ConnectionState.OPEN
    context.server = Server(address=("", 0))
    context.server.state = ConnectionState.OPEN
    return context


def run(connection: HttpConnection, *given: events.Event) -> list[commands.Command]:
    """What a layer does when it is told this."""
    return [command for event in given for command in connection.handle_event(event)]


def received(given: list[commands.Command]) -> Iterator[HttpEvent]:
    """What of it a layer hands on as read."""
    return (command.event for command in given if isinstance(command, ReceiveHttp))


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
        self._early = Early()

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        if isinstance(event, events.DataReceived) and self.request is not None:
            yield from self._pass_informational(self.request)
            if not self.buf:
                return
        for command in super().read_headers(event):
            if isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                self._early.belong_to(command.event.response)
                self._early = Early()
            yield command

    def _pass_informational(self, request: Request) -> Commands:
        while _STARTS_INFORMATIONAL.match(bytes(self.buf)) and (lines := self.buf.maybe_extract_lines()):
            try:
                response = http1.read_response_head([bytes(line) for line in lines])
            except ValueError:
                continue  # a broken one is as good as none
            self._early.add(response.status_code, response.headers.fields)
            # One in HTTP/2 is sent to a server of HTTP/1 in a fork, where a tape answers it.
            if self.stream_id is not None and (request.is_http11 or request.is_http2):
                yield SendHttp(ResponseHeaders(self.stream_id, response), self.context.client)


class _ResetsOfStreams(Http1Client):
    """Gives a stream of HTTP/2 back the reset that its answer came with, by a hop of HTTP/1 (`ends_in_reset`)."""

    def _handle_event(self, event: events.Event) -> Commands:
        for command in super()._handle_event(event):
            wrong = command.event if isinstance(command, ReceiveHttp) else None
            code = None if self.request is None else vars(self.request).get(_RESET)
            if isinstance(wrong, ResponseProtocolError) and code is not None:
                wrong.message = StreamReset(wrong.message, code, by_client=False)
            yield command


_GUARDS: tuple[tuple[Any, ...], ...] = (
    ("trailers", loses_trailers, _TrailersToClient, _TrailersToServer),
    ("informational", stalls_on_informational, _Informational),
    ("no body", ends_what_has_no_body, NoBody),
    ("resets", takes_a_cut_for_an_end, ResetBodies),
    ("doubled framing", refuses_doubled_framing, DoubledFraming, ListedLength),
    ("raw paths", refuses_raw_paths, RawPath),
)
"""Name, probe, and the classes that are mixed in, the outermost first."""
