"""WebSockets pass through as the bytes that they are, and are read as they go by. Knows mitmproxy 12.3's layers.

mitmproxy's own layer holds a message back until it is whole, writes every frame and its compression anew, and makes a
code 1000 of a connection that broke off: another stream than the agent would have had. Where mitmproxy has no place to
put this in, its own layer stays, and what passes is not taped.
"""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mitmproxy.proxy import commands, events, layer, layers
from mitmproxy.proxy.layers.websocket import WebsocketEndHook, WebsocketLayer, WebsocketStartHook

from tapeproxy.addons.taps import Tap, tap_of

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow
    from mitmproxy.proxy.context import Context
    from mitmproxy.proxy.layer import CommandGenerator


def apply() -> bool:
    """Have mitmproxy use the layer below for flows with a tap, in this whole process; False where it can't be done."""
    # HttpStream makes its layer from this name; the original class stays as it is.
    engine: Any = layers.http
    if not hasattr(getattr(engine, "websocket", None), "WebsocketLayer"):
        return False
    engine.websocket = SimpleNamespace(WebsocketLayer=_layer_for)
    return True


def in_force() -> bool:
    """Whether `apply` has found a place."""
    engine: Any = layers.http
    return getattr(getattr(engine, "websocket", None), "WebsocketLayer", None) is _layer_for


def _layer_for(context: "Context", flow: "HTTPFlow") -> layer.Layer:
    tap = tap_of(flow)
    return WebsocketLayer(context, flow) if tap is None else PassingLayer(context, flow, tap)


class PassingLayer(layer.Layer):
    """Relays bytes of both directions at once; when one side goes, so does the other."""

    def __init__(self, context: "Context", flow: "HTTPFlow", tap: Tap) -> None:
        super().__init__(context)
        self._flow = flow
        self._tap = tap
        self._ended = False

    def _handle_event(self, event: events.Event) -> "CommandGenerator[None]":
        if isinstance(event, events.Start):
            yield WebsocketStartHook(self._flow)
        elif self._ended or not isinstance(event, events.ConnectionEvent):
            return
        elif isinstance(event, events.DataReceived):
            from_client = event.connection == self.context.client
            self._tap.take("server" if from_client else "client", event.data)
            yield commands.SendData(self.context.server if from_client else self.context.client, event.data)
        elif isinstance(event, events.ConnectionClosed):
            self._ended = True
            self._tap.ended("client" if event.connection == self.context.client else "server")
            yield commands.CloseConnection(self.context.server)
            yield commands.CloseConnection(self.context.client)
            yield WebsocketEndHook(self._flow)
            self._flow.live = False
