"""Guards for what mitmproxy's HTTP/2 does wrong, each put in only where a probe shows the fault. Knows mitmproxy 12.3.

1. An informational response (103 Early Hints) is not passed on.
2. A stream that the server or the client resets is reset on the other side for another reason.
3. A server's GOAWAY breaks off the exchanges that the server would still have finished.
4. A server that answers before it has all of a request, and then wants no more of it, seems to have broken off.
5. When the upstream fails, a client is told that its stream was reset; without us it would see its connection end.
6. What a slow reader has not taken is all held in memory (`h2pacing.py`).

They stand together, because several replace the same methods of the same layers, in an order that matters.

And HTTP/2 without TLS goes through an upstream proxy, in which mitmproxy would speak HTTP/1.1.

As in `h1fixes`, a probe feeds mitmproxy's layers some bytes and looks at what comes out.
"""

from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import h2.events
from h2.config import H2Configuration
from h2.connection import ConnectionInputs, H2Connection, H2ConnectionStateMachine
from h2.errors import ErrorCodes
from hyperframe.frame import GoAwayFrame
from mitmproxy.connection import ConnectionState
from mitmproxy.http import Headers as MitmHeaders
from mitmproxy.http import HTTPFlow, Request, Response
from mitmproxy.proxy import commands, events, layers
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import SendHttp
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    HttpEvent,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Connection, Http2Server
from mitmproxy.proxy.layers.http._upstream_proxy import HttpUpstreamProxy

from tapeproxy.addons.early import Early
from tapeproxy.addons.h1fixes import StreamReset, probe_context, received, run
from tapeproxy.addons.h2pacing import PacedClient, PacedServer, takes_all

if TYPE_CHECKING:
    from mitmproxy.options import Options

type Commands = Generator[commands.Command, Any, None]


def reset_of(flow: HTTPFlow) -> StreamReset | None:
    """The reset of its own stream by which a flow ended, if it did; None also where mitmproxy gave it another form."""
    message = flow.error.msg if flow.error is not None else None
    return message if isinstance(message, StreamReset) else None


def apply() -> tuple[str, ...]:
    """Put in the guards that are needed, for this whole process; returns the names of those in force."""
    needed = {name: guards for name, probe, *guards in _GUARDS if probe()}
    server = [guard for guards in needed.values() for guard in guards if issubclass(guard, Http2Server)]
    client = [guard for guards in needed.values() for guard in guards if issubclass(guard, Http2Client)]
    # HttpLayer makes its connections from these two names; the original classes stay as they are.
    for name, fixes, original in (("Http2Server", server, Http2Server), ("Http2Client", client, Http2Client)):
        setattr(layers.http, name, type(name, tuple(fixes), {}) if fixes else original)
    engine: Any = layers.http
    if hasattr(getattr(engine, "_upstream_proxy", None), "HttpUpstreamProxy"):
        engine._upstream_proxy = SimpleNamespace(HttpUpstreamProxy=_Tunnel)
    return tuple(needed)


# --- probes --------------------------------------------------------------------------------------------------------


def swallows_informational() -> bool:
    """True when this mitmproxy keeps a 103 to itself."""
    client, far = _asked()
    far.send_headers(1, [(b":status", b"103"), (b"link", b"</a>")])
    return not any(isinstance(command, SendHttp) for command in _hear(client, far))


def changes_resets() -> bool:
    """True when this mitmproxy does not say for which reason a stream was reset."""
    server = Http2Server(_context())
    near = _client_of(server)
    near.send_headers(1, _GET, end_stream=True)
    _hear(server, near)
    _seen(near, run(server, ResponseHeaders(1, Response.make(200))))
    wrong = ResponseProtocolError(
        1, StreamReset("reset", ErrorCodes.REFUSED_STREAM, by_client=False), ErrorCode.GENERIC_SERVER_ERROR
    )
    return ErrorCodes.REFUSED_STREAM not in [code for code, _ in _resets(near, run(server, wrong))]


def breaks_off_at_goaway() -> bool:
    """True when this mitmproxy gives up an exchange that the server said it would finish."""
    client, _ = _asked()
    goaway = GoAwayFrame(0, last_stream_id=1).serialize()
    seen = run(client, events.DataReceived(client.conn, goaway))
    return any(isinstance(event, ResponseProtocolError) for event in received(seen))


def leaves_early_answers_open() -> bool:
    """True when this mitmproxy takes an early answer for one that was broken off."""
    server = Http2Server(_context())
    near = _client_of(server)
    near.send_headers(1, _GET)
    _hear(server, near)
    _seen(near, run(server, ResponseHeaders(1, Response.make(413))))
    stop = ResponseProtocolError(
        1, StreamReset("reset", ErrorCodes.NO_ERROR, by_client=False), ErrorCode.GENERIC_SERVER_ERROR
    )
    seen = _seen(near, run(server, stop))
    return not any(isinstance(event, h2.events.StreamEnded) for event in seen)


def resets_the_stream_alone() -> bool:
    """True when this mitmproxy goes on with a client's connection whose upstream has failed."""
    server = Http2Server(_context())
    near = _client_of(server)
    near.send_headers(1, _GET, end_stream=True)
    _hear(server, near)
    seen = run(server, ResponseProtocolError(1, "killed", ErrorCode.KILL))
    return not any(isinstance(command, commands.CloseConnection) for command in seen)


_GET = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"probe"), (b":path", b"/")]


def _context() -> Context:
    context = probe_context()
    # These belong to mitmproxy's addon Proxyserver, which is not there yet.
    known = {"validate_inbound_headers": False, "normalize_outbound_headers": True, "http2_ping_keepalive": 0}
    context.options = cast("Options", SimpleNamespace(**known))
    return context


def _asked() -> tuple[Http2Client, H2Connection]:
    """mitmproxy's original client layer once it has sent a GET, and the server that it talks to."""
    client = Http2Client(_context())
    far = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    far.initiate_connection()
    get = Request.make("GET", "https://probe/")
    get.data.authority = b"probe"
    for command in run(client, events.Start(), RequestHeaders(1, get, end_stream=True), RequestEndOfMessage(1)):
        if isinstance(command, commands.SendData):
            far.receive_data(command.data)
    _hear(client, far)
    return client, far


def _client_of(server: Http2Server) -> H2Connection:
    near = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    near.initiate_connection()
    _seen(near, run(server, events.Start()))
    return near


def _hear(layer: Http2Connection, far: H2Connection) -> list[commands.Command]:
    """Give the layer what `far` has written."""
    return run(layer, events.DataReceived(layer.conn, far.data_to_send()))


def _seen(near: H2Connection, sent: list[commands.Command]) -> list[h2.events.Event]:
    return [
        event for command in sent if isinstance(command, commands.SendData) for event in near.receive_data(command.data)
    ]


def _resets(near: H2Connection, sent: list[commands.Command]) -> Iterator[tuple[int, int | None]]:
    for event in _seen(near, sent):
        if isinstance(event, h2.events.StreamReset):
            yield event.error_code or 0, event.stream_id


# --- guards --------------------------------------------------------------------------------------------------------


class _Informational(Http2Client):
    """Passes informational responses on as they come, and notes them on the final response."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._early: dict[int, Early] = {}

    def handle_h2_event(self, event: h2.events.Event) -> Generator[commands.Command, Any, bool]:
        if isinstance(event, h2.events.InformationalResponseReceived):
            fields = dict(event.headers)
            if not fields.get(b":status", b"").isdigit():
                yield from self.protocol_error("Invalid HTTP/2 response headers: an informational one of no status")
                return True
            yield from self._pass(event)
            return False
        if isinstance(event, h2.events.StreamReset):
            self._early.pop(event.stream_id, None)
        for command in (steps := _Returning(super().handle_h2_event(event))):
            if isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                self._early.pop(command.event.stream_id, Early()).belong_to(command.event.response)
            yield command
        return steps.value

    def _pass(self, event: h2.events.InformationalResponseReceived) -> Commands:
        status, fields = 0, []
        for name, value in event.headers:
            if name == b":status":
                status = int(value)
            else:
                fields.append((bytes(name), bytes(value)))
        self._early.setdefault(event.stream_id, Early()).add(status, tuple(fields))
        if status != 100:  # with which mitmproxy answers by itself
            response = Response.make(status, b"")
            response.data.http_version, response.headers = b"HTTP/2.0", MitmHeaders(fields)
            theirs = self.their_stream_id[event.stream_id]
            yield SendHttp(ResponseHeaders(theirs, response), self.context.client)


class _ResetsOfClients(Http2Server):
    """Tells which reset came from the client, and resets a client's stream for the server's reason."""

    def handle_h2_event(self, event: h2.events.Event) -> Generator[commands.Command, Any, bool]:
        return (yield from _with_code(super().handle_h2_event(event), event, by_client=True))

    def _handle_event(self, event: events.Event) -> Commands:
        if not (yield from _reset_alike(self, event, ResponseProtocolError)):
            yield from super()._handle_event(event)


class _ResetsOfServers(Http2Client):
    """The same the other way round."""

    def handle_h2_event(self, event: h2.events.Event) -> Generator[commands.Command, Any, bool]:
        return (yield from _with_code(super().handle_h2_event(event), event, by_client=False))

    def _handle_event2(self, event: events.Event) -> Commands:
        if not (yield from _reset_alike(self, event, RequestProtocolError)):
            yield from super()._handle_event2(event)


def _with_code(
    steps: Generator[commands.Command, Any, bool], event: h2.events.Event, *, by_client: bool
) -> Generator[commands.Command, Any, bool]:
    returning = _Returning(steps)
    for command in returning:
        if isinstance(event, h2.events.StreamReset) and isinstance(command, ReceiveHttp):
            wrong = command.event
            if isinstance(wrong, RequestProtocolError | ResponseProtocolError):
                # mitmproxy says of both sides that it was the client.
                text = wrong.message if by_client else wrong.message.replace("by client", "by the server")
                wrong.message = StreamReset(text, int(event.error_code or 0), by_client=by_client)
        yield command
    return returning.value


def _reset_alike(layer: Http2Connection, event: events.Event, kind: type[HttpEvent]) -> Generator[Any, Any, bool]:
    """Send the other side's reset as it came; False: it is none, or there is nothing to reset."""
    message = getattr(event, "message", None)
    if not isinstance(event, kind) or not isinstance(message, StreamReset) or layer.is_closed(event.stream_id):
        return False
    layer.h2_conn.reset_stream(event.stream_id, message.code)
    yield commands.SendData(layer.conn, layer.h2_conn.data_to_send())
    return True


class _EarlyAnswers(Http2Server):
    """Ends an answer in order whose server then wants no more of the request (RFC 9113, 8.1)."""

    def _handle_event(self, event: events.Event) -> Commands:
        message = getattr(event, "message", None)
        if (
            isinstance(event, ResponseProtocolError)
            and isinstance(message, StreamReset)
            and message.code == ErrorCodes.NO_ERROR
            and self.is_open_for_us(event.stream_id)
            and self.h2_conn.streams[event.stream_id].state_machine.headers_sent
        ):
            self.h2_conn.end_stream(event.stream_id)
            yield commands.SendData(self.conn, self.h2_conn.data_to_send())
        yield from super()._handle_event(event)


class _ResetsAfterEnds(Http2Client):
    """Tells of a reset that came together with the answer's end: mitmproxy has forgotten the stream by then."""

    def handle_h2_event(self, event: h2.events.Event) -> Generator[commands.Command, Any, bool]:
        forgotten = isinstance(event, h2.events.StreamReset) and event.stream_id not in self.streams
        stop = yield from super().handle_h2_event(event)
        if forgotten and isinstance(event, h2.events.StreamReset) and event.stream_id in self.their_stream_id:
            text = StreamReset("the server wants no more", int(event.error_code or 0), by_client=False)
            yield ReceiveHttp(ResponseProtocolError(event.stream_id, text, ErrorCode.GENERIC_SERVER_ERROR))
        return stop


class _States(H2ConnectionStateMachine):
    """Those of the library, for which all is over at a GOAWAY, also for frames that came in one piece with it."""

    def process_input(self, input_: ConnectionInputs) -> list[h2.events.Event]:
        return [] if input_ is ConnectionInputs.RECV_GOAWAY else super().process_input(input_)


class _GoAway(Http2Client):
    """Lets a server finish what it says it will, and begins nothing more on its connection."""

    _leaving = False

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.h2_conn.state_machine = _States()

    def handle_h2_event(self, event: h2.events.Event) -> Generator[commands.Command, Any, bool]:
        if not isinstance(event, h2.events.ConnectionTerminated) or event.last_stream_id is None:
            return (yield from super().handle_h2_event(event))
        for number in [number for number in self.streams if number > event.last_stream_id]:
            self.streams.pop(number)
            # Whatever the server's reason is: it has not begun with this one.
            text = StreamReset("the server is leaving", ErrorCodes.REFUSED_STREAM, by_client=False)
            yield ReceiveHttp(ResponseProtocolError(number, text, ErrorCode.GENERIC_SERVER_ERROR))
        if not self.streams:
            return (yield from super().handle_h2_event(event))
        self._leaving = True
        self.conn.state = ConnectionState.CAN_READ  # so mitmproxy opens another one for what comes next
        return False

    def _handle_event2(self, event: events.Event) -> Commands:
        yield from super()._handle_event2(event)
        if self._leaving and not self.streams:
            self._leaving = False
            yield commands.CloseConnection(self.conn)


class _FailedUpstream(Http2Server):
    """Ends a client's connection when its upstream failed, once the other exchanges on it are over."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._open: set[int] = set()
        self._failed = False

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, ResponseProtocolError) and event.code is ErrorCode.KILL:
            self._open.discard(event.stream_id)
            self._failed = True  # and nothing is said of it: clients that are told give up the others, too
        else:
            if isinstance(event, ResponseEndOfMessage | ResponseProtocolError):
                self._open.discard(event.stream_id)
            for command in super()._handle_event(event):
                if isinstance(command, ReceiveHttp) and isinstance(command.event, RequestHeaders):
                    self._open.add(command.event.stream_id)
                elif isinstance(command, ReceiveHttp) and isinstance(command.event, RequestProtocolError):
                    self._open.discard(command.event.stream_id)
                yield command
        if self._failed and not self._open:
            self._failed = False
            yield commands.CloseConnection(self.conn)
            self._handle_event = self.done  # type: ignore[method-assign]  # as mitmproxy does


class _Tunnel(HttpUpstreamProxy):
    """A tunnel through the user's own proxy. Where a client speaks HTTP/2 without TLS in one, so is spoken in this."""

    def start_handshake(self) -> Commands:
        client = self.context.client
        if client.alpn == b"h2" and not client.tls and not self.conn.tls:
            self.conn.alpn = b"h2"
        yield from super().start_handshake()


class _Returning:
    """The commands of a generator, and then what it returned."""

    def __init__(self, steps: Generator[commands.Command, Any, bool]) -> None:
        self._steps = steps
        self.value = False

    def __iter__(self) -> Iterator[commands.Command]:
        self.value = yield from self._steps


_GUARDS: tuple[tuple[Any, ...], ...] = (
    ("failed upstream", resets_the_stream_alone, _FailedUpstream),
    ("early answers", leaves_early_answers_open, _EarlyAnswers, _ResetsAfterEnds),
    ("informational", swallows_informational, _Informational),
    ("resets", changes_resets, _ResetsOfClients, _ResetsOfServers),
    ("goaway", breaks_off_at_goaway, _GoAway),
    ("slow readers", takes_all, PacedServer, PacedClient),
)
"""Name, probe, and the classes that are mixed in, the outermost first."""
