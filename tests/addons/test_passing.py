"""Why WebSockets pass mitmproxy's own layer by, and what happens where they can't."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import wsproto.events as ws
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.http import HTTPFlow, Request, Response
from mitmproxy.options import Options
from mitmproxy.proxy import layers
from mitmproxy.proxy.commands import CloseConnection, Command, SendData, StartHook
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.events import ConnectionClosed, DataReceived, Event, HookCompleted, Start
from mitmproxy.proxy.layer import Layer
from mitmproxy.proxy.layers import websocket
from mitmproxy.websocket import WebSocketData
from origin import Origin
from recording import Recording
from wstalks import WsClient, accepting, echo

from tapeproxy.addons import passing
from tapeproxy.addons.taps import TAP, Tap

type Make = Callable[..., Recording]


def opened() -> tuple[Context, HTTPFlow]:
    """A flow that has just become a WebSocket."""
    context = Context(Client(peername=("", 0), sockname=("", 0), timestamp_start=0), Options())
    context.server = Server(address=("", 0))
    context.client.state = context.server.state = ConnectionState.OPEN
    flow = HTTPFlow(context.client, context.server)
    flow.request, flow.response = Request.make("GET", "http://x/"), Response.make(101)
    flow.websocket = WebSocketData()
    return context, flow


def commands(layer: Layer, *given: Event) -> Iterator[Command]:
    """What a layer does about events, its hooks run."""
    waiting = list(given)
    while waiting:
        for command in layer.handle_event(waiting.pop(0)):
            yield command
            if isinstance(command, StartHook) and command.blocking:
                waiting.insert(0, HookCompleted(command))


def sent(given: Iterator[Command]) -> list[bytes]:
    return [command.data for command in given if isinstance(command, SendData)]


def test_what_is_wrong_with_mitmproxy_s_own() -> None:
    """When this fails, ours may be of no use any more."""
    context, flow = opened()
    own = websocket.WebsocketLayer(context, flow)
    assert sent(commands(own, Start(), DataReceived(context.server, b"\x01\x03abc"))) == [], "the rest is waited for"
    (said, *_) = sent(commands(own, ConnectionClosed(context.server)))
    assert said == b"\x88\x02\x03\xe8", "a close with code 1000, where the server broke off"


def test_bytes_pass_as_they_came_once_they_were_heard() -> None:
    context, flow = opened()
    heard: list[object] = []
    flow.metadata[TAP] = Tap(lambda to, data: heard.append((to, data)), heard.append, lambda: "")
    assert passing.apply()
    engine: Any = layers.http
    layer: Layer = engine.websocket.WebsocketLayer(context, flow)
    pieces = [b"\x01\x03ab", b"c", b"\xff\xff no frame"]
    found = commands(layer, Start(), *(DataReceived(context.server, piece) for piece in pieces))
    for at, piece in enumerate(sent(found)):
        assert (piece, heard[at]) == (pieces[at], ("client", pieces[at])), "heard before it is passed on"
    ends = [*commands(layer, DataReceived(context.client, b"x"), ConnectionClosed(context.server))]
    assert heard[3:] == [("server", b"x"), "server"]
    assert [type(command) for command in ends if isinstance(command, CloseConnection)] == [CloseConnection] * 2
    assert [*commands(layer, ConnectionClosed(context.client), DataReceived(context.client, b"late"))] == []


def test_without_a_place_to_put_it_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers.http, "websocket", SimpleNamespace())
    assert not passing.apply()


def test_a_websocket_that_is_not_listened_to_passes_and_is_noted(record: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with Origin(accepting(echo)) as origin, record() as recording:
        monkeypatch.setattr(layers.http, "websocket", websocket)
        with recording.tunnel("127.0.0.1", origin.port) as sock:
            client = WsClient(sock, f"127.0.0.1:{origin.port}", "/").accepted()
            client.send("one", "two")
            assert client.texts(4) == ["one", "eno", "two", "owt"]
            assert isinstance(client.close(), ws.CloseConnection)
        recording.finish()
        recording.join()
        assert recording.wire.untaped == {("websocket-untaped", "127.0.0.1"): 1}
        assert recording.wire.failures.count == 0
    exchange = recording.exchange()
    assert exchange.frames == []
    assert exchange.end is not None and exchange.end.how == "complete"
    assert [note.what for note in recording.tape().notes] == ["websocket-untaped"]
