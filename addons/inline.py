"""A short way through mitmproxy's event machinery. Knows how it runs hooks and writes, and that we need none of it.

For every hook, mitmproxy stops the exchange, hands a command up through some ten layers, starts a task that asks every
addon twice, and comes down again: a third of the time that a request spends in it, and with a dozen addons more than
all the rest. All hooks of ours return at once. So those of an exchange are called where they arise, and the exchange
goes on. The others, and `requestheaders`, are called at the top, and answered there once the present event is done
with: a pipelined request has to wait until the one before it is wholly finished, and that wait is this hook.

And it makes a system call of each piece that it writes, so pieces that leave together are joined: a request's head and
body, a response's head and its first chunk. Chunks stay chunks; only TCP sees one write.

And all that passes in a CONNECT tunnel goes through the layers that answered the CONNECT, which have nothing more to
say. Once TLS is up inside, they are left out.

All this leans on mitmproxy's insides, so when the wire starts an exchange is put through the short way, without a
socket. Where it does not come out as it should, as with another version, everything goes mitmproxy's own way.
"""

import inspect
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mitmproxy import ctx
from mitmproxy.connection import Client, ConnectionState
from mitmproxy.http import MessageData
from mitmproxy.proxy import layers
from mitmproxy.proxy.commands import (
    CloseConnection,
    CloseTcpConnection,
    Command,
    OpenConnection,
    SendData,
    StartHook,
)
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.events import DataReceived, Event, HookCompleted, OpenConnectionCompleted, Start
from mitmproxy.proxy.layers.http import HTTPMode, HttpStream
from mitmproxy.proxy.layers.http._events import RequestData
from mitmproxy.proxy.layers.http._hooks import HttpRequestHook, HttpResponseHeadersHook, HttpResponseHook

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import MAX_BODY
from tapeproxy.addons.sockets import proxy_server

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow
    from mitmproxy.options import Options
    from mitmproxy.proxy.layer import Layer
    from mitmproxy.tls import TlsData

type _Calls = list[Callable[..., Any]]

_AT_ONCE = (HttpRequestHook, HttpResponseHeadersHook, HttpResponseHook)
_HELD = 1 << 20
"""Bytes of what was held of a request that are passed on at once."""
_PIECES = 4
"""How many writes are joined at most: the first should not wait for long."""


_HOOKS = ["requestheaders", "request", "responseheaders", "response"]
_checked: Callable[[MessageData], None] | None = getattr(MessageData, "__post_init__", None)


class InlineHooks:
    """Addon: makes every new connection go the short way, where `probe` finds that it leads to the same place."""

    def __init__(self, failures: Failures, probe: "Callable[[Options], bool] | None" = None) -> None:
        self._failures = failures
        self._probe = probe or leads_there
        self._calls: dict[str, _Calls | None] = {}
        self._options: Options | None = None
        _shorten(None)  # what another wire in this process has left

    def running(self) -> None:
        with self._failures:
            try:
                options = _snapshot(ctx.options)
            except AttributeError:
                return
            if self._probe(options):
                self._options = options
                _shorten(self.run)

    def client_connected(self, client: "Client") -> None:
        if self._options is None:
            return
        with self._failures:
            handler = proxy_server().connections[client.id]
            context = handler.layer.context
            context.options = self._options
            handler.layer = cast("Layer", _ShortLayer(handler.layer, context, self.run))

    def tls_established_client(self, data: "TlsData") -> None:
        if self._options is None:
            return
        with self._failures:
            context = data.context
            stream = next((layer for layer in context.layers if isinstance(layer, HttpStream)), None)
            if stream is None or stream.child_layer is None or stream.flow.request.method != "CONNECT":
                return
            short: object = proxy_server().connections[context.client.id].layer
            assert isinstance(short, _ShortLayer)
            short.enter(stream.child_layer)

    def run(self, hook: StartHook) -> bool:
        """Call every addon's function for `hook`; False, and nothing done, when one of them has to be awaited."""
        if hook.name not in self._calls:
            self._calls[hook.name] = _collect(hook.name)
        calls = self._calls[hook.name]
        if calls is None:
            return False
        args = hook.args()
        for call in calls:
            with self._failures:
                call(*args)
        return True


@dataclass
class RequestGrowsHook(StartHook):  # type: ignore[no-untyped-call]  # mitmproxy's __init_subclass__
    """A request whose length nobody knew has become too large to be held: it is streamed if an addon says how."""

    flow: "HTTPFlow"


class _InlineStream(HttpStream):
    """One exchange; calls its hooks itself."""

    def check_body_size(self, request: bool) -> Generator[Command, Any, bool]:
        if request and len(self.request_body_buf) > MAX_BODY and self.run(RequestGrowsHook(self.flow)):
            if self.flow.request.stream:
                held = bytes(self.request_body_buf)
                self.request_body_buf.clear()  # type: ignore[no-untyped-call]  # mitmproxy's
                yield from self.start_request_stream()
                for at in range(0, len(held), _HELD):
                    yield from self.handle_event(RequestData(self.stream_id, held[at : at + _HELD]))
            return False
        return (yield from super().check_body_size(request))

    @staticmethod
    def run(hook: StartHook) -> bool:
        """Call the hook's functions: see InlineHooks, which puts its own in the place of this."""
        raise NotImplementedError(hook)

    def _handle_event(self, event: Event) -> Generator[Command, Any, None]:
        steps = super()._handle_event(event)
        reply = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration:
                return
            done = isinstance(command, _AT_ONCE) and self.run(command)
            reply = None if done else (yield command)


class _ShortLayer:
    """In the place of a connection's first layer, of which mitmproxy uses `handle_event` and `context`."""

    def __init__(self, layer: "Layer", context: "Context", run: Callable[[StartHook], bool]) -> None:
        self.context = context
        self._layer = layer
        self._run = run
        self._in_tunnel = False

    def enter(self, layer: "Layer") -> None:
        """Go straight to the first layer inside a tunnel from now on."""
        self._layer = layer
        self._in_tunnel = True

    def handle_event(self, event: Event) -> Iterator[Command]:
        return _join(self._commands(event))

    def _commands(self, event: Event) -> Iterator[Command]:
        events = deque([event])
        while events:
            for command in self._layer.handle_event(events.popleft()):
                if not isinstance(command, StartHook) or not self._run(command):
                    yield self._outward(command)
                elif command.blocking:
                    events.append(HookCompleted(command))

    def _outward(self, command: Command) -> Command:
        # As HttpStream.passthrough does: a tunnel is closed on both sides at once.
        if self._in_tunnel and isinstance(command, CloseTcpConnection):
            return CloseConnection(command.connection)
        return command


def leads_there(options: "Options") -> bool:
    """True when an exchange that goes the short way calls its hooks in their order and is passed on as it came."""
    hooks: list[str] = []

    def run(hook: StartHook) -> bool:
        hooks.append(hook.name)
        return True

    _shorten(run)
    try:
        return _passes(options, run) and [name for name in hooks if name in _HOOKS] == _HOOKS
    except Exception:
        return False  # whatever it is that this mitmproxy has not got, or does otherwise
    finally:
        _shorten(None)


def _passes(options: "Options", run: Callable[[StartHook], bool]) -> bool:
    client = Client(peername=("", 0), sockname=("", 0), timestamp_start=0, state=ConnectionState.OPEN)
    context = Context(client, options)
    short = _ShortLayer(layers.HttpLayer(context, HTTPMode.regular), context, run)
    list(short.handle_event(Start()))
    asked = b"POST http://probe/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
    commands = short.handle_event(DataReceived(client, asked))
    (opening,) = (command for command in commands if isinstance(command, OpenConnection))
    server = opening.connection
    server.state = ConnectionState.OPEN
    sent = _sent(short.handle_event(OpenConnectionCompleted(opening, None)))
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    got = _sent(short.handle_event(DataReceived(server, answer)))
    return sent == [(server, asked.replace(b"http://probe", b""))] and got == [(client, answer)]


def _sent(commands: Iterable[Command]) -> list[tuple[object, bytes]]:
    return [(command.connection, command.data) for command in commands if isinstance(command, SendData)]


def _shorten(run: Callable[[StartHook], bool] | None) -> None:
    """Make mitmproxy's streams call their hooks by `run` in this process; None: as mitmproxy made them."""
    # HttpLayer makes its streams from this name; the original class stays as it is.
    engine: Any = layers.http
    engine.HttpStream = type("HttpStream", (_InlineStream,), {"run": staticmethod(run)}) if run else HttpStream
    if _checked is not None:
        # A check of every field's type, which mitmproxy leaves out itself under `python -O`.
        MessageData.__post_init__ = _no_check if run else _checked  # type: ignore[method-assign]


def _join(commands: Iterable[Command]) -> Iterator[Command]:
    """Make one of writes that follow each other on one connection."""
    run: list[SendData] = []
    for command in commands:
        if run and (
            len(run) == _PIECES or not isinstance(command, SendData) or command.connection is not run[0].connection
        ):
            yield _joined(run)
            run = []
        if isinstance(command, SendData):
            run.append(command)
        else:
            yield command
    if run:
        yield _joined(run)


def _joined(run: list[SendData]) -> SendData:
    return run[0] if len(run) == 1 else SendData(run[0].connection, b"".join(piece.data for piece in run))


def _collect(name: str) -> _Calls | None:
    calls = [call for addon in ctx.master.addons.chain if (call := getattr(addon, name, None)) is not None]
    return None if any(inspect.iscoroutinefunction(call) for call in calls) else calls


def _no_check(_: MessageData) -> None:
    return None


def _snapshot(options: "Options") -> "Options":
    """The options as plain attributes: mitmproxy's copy a value whenever it is read, a dozen times a request."""
    values = {name: getattr(options, name) for name in options._options}
    return cast("Options", SimpleNamespace(**values))
