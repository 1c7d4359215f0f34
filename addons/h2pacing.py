"""Slow readers of HTTP/2: of a stream no more is taken from one side than the other side takes. Knows mitmproxy 12.3.

mitmproxy lets each side send 2 GiB and more of a stream, and keeps what the other has no room for. Here a side may send
`WINDOW` bytes, and gets no more room while `HIGH` of them wait for the other. The connection has all the room there is,
so one slow stream holds up no other.
"""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from mitmproxy.connection import Client, Connection
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import SendHttp
from mitmproxy.proxy.layers.http._events import HttpEvent, RequestHeaders, ResponseEndOfMessage, ResponseProtocolError
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Connection, Http2Server
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

type Commands = Generator[commands.Command, Any, None]

WINDOW = 4 << 20
"""Bytes that a side may send of a stream before it hears that they were taken."""
HIGH = 1 << 20
"""Bytes of a stream that wait for the other side before no more room is given."""
_LOW = HIGH // 4
_BATCH = 1 << 20
"""Bytes that are acknowledged at once."""
_CROSSING = "tapeproxy_crossing"


@dataclass(slots=True)
class _Crossing:
    """The two sides of one client's streams: who faces the client, and who the servers, by the client's numbers."""

    server: "PacedServer | None" = None
    clients: dict[int, "PacedClient"] = field(default_factory=dict[int, "PacedClient"])


def _crossing_of(client: Client) -> _Crossing:
    crossing: _Crossing = vars(client).setdefault(_CROSSING, _Crossing())
    return crossing


class _Taken(HttpEvent):
    """The other side of a stream has taken what waited for it."""


class _Sent(H2Connection):
    """Hears of what leaves."""

    waiting: dict[int, int]

    def send_data(self, stream_id: int, data: Any, end_stream: bool = False, pad_length: Any = None) -> None:
        super().send_data(stream_id, data, end_stream, pad_length)
        left = self.waiting.pop(stream_id, 0) - len(data)
        if left > 0:
            self.waiting[stream_id] = left


class _Measured(BufferedH2Connection, _Sent):
    """Counts what waits of each stream, and gives room for more where `side` lets it."""

    def __init__(self, side: "_Paced") -> None:
        super().__init__(side.h2_conf)
        self.waiting: dict[int, int] = {}
        self.owed: dict[int, int] = {}
        self._side = side
        self._line = 0
        self.local_settings.initial_window_size = WINDOW
        self.local_settings.acknowledge()

    def send_data(self, stream_id: int, data: Any, end_stream: bool = False, pad_length: Any = None) -> None:
        if len(data) <= self.max_outbound_frame_size:  # or it comes back in pieces
            self.waiting[stream_id] = self.waiting.get(stream_id, 0) + len(data)
        super().send_data(stream_id, data, end_stream, pad_length)

    def left(self, stream_id: int) -> int:
        """Bytes of a stream that wait for room."""
        return self.waiting.get(stream_id, 0) if stream_id in self.stream_buffers else 0

    def acknowledge_received_data(self, acknowledged_size: int, stream_id: int) -> None:
        self._line += acknowledged_size
        if self._line >= _BATCH:
            with contextlib.suppress(ProtocolError):  # the connection is over
                self.increment_flow_control_window(self._line)
            self._line = 0
        self.owed[stream_id] = owed = self.owed.get(stream_id, 0) + acknowledged_size
        if owed >= _BATCH and not self._side.is_clogged(stream_id):
            self.pay(stream_id)

    def pay(self, stream_id: int) -> None:
        """Give a stream the room that it has used."""
        owed = self.owed.pop(stream_id, 0)
        if owed:
            with contextlib.suppress(ProtocolError):  # it is over
                self.increment_flow_control_window(owed, stream_id)


class _Paced(Http2Connection):
    """One side. `holding`: streams of its own of which the other side is given no more room, and that side.

    `paced` is its `h2_conn`.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)  # type: ignore[call-arg]  # the class that this is mixed into has the other one
        self.h2_conn = self.paced = _Measured(self)
        self.holding: dict[int, Connection] = {}
        self.crossing = _crossing_of(context.client)

    def is_clogged(self, stream_id: int) -> bool:
        """Whether too much of a stream waits for the other side; if so, it will say when it does not."""
        raise NotImplementedError

    def number_of(self, stream_id: int) -> int:
        """The client's number of a stream of this side."""
        return stream_id

    def hold(self, stream_id: int, other: Connection) -> bool:
        """Whether too much waits here; if so, `other` will be told when it does not."""
        if self.paced.left(stream_id) <= HIGH:
            return False
        self.holding[stream_id] = other
        return True

    def release(self) -> Commands:
        """Tell of what has been taken."""
        for number in [number for number in self.holding if self.paced.left(number) <= _LOW]:
            yield SendHttp(_Taken(self.number_of(number)), self.holding.pop(number))

    def give(self, stream_id: int) -> Commands:
        """Give a stream of this side room again."""
        self.paced.pay(stream_id)
        if data := self.h2_conn.data_to_send():
            yield commands.SendData(self.conn, data)


class PacedServer(_Paced, Http2Server):
    """The side that faces a client."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.crossing.server = self

    def is_clogged(self, stream_id: int) -> bool:
        client = self.crossing.clients.get(stream_id)
        ours = None if client is None else client.our_stream_id.get(stream_id)
        return client is not None and ours is not None and client.hold(ours, self.conn)

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, _Taken):
            yield from self.give(event.stream_id)
            return
        yield from super()._handle_event(event)
        if isinstance(event, events.DataReceived):
            yield from self.release()
        elif isinstance(event, ResponseEndOfMessage | ResponseProtocolError):
            client = self.crossing.clients.pop(event.stream_id, None)
            self.paced.owed.pop(event.stream_id, None)
            if client is not None:
                client.paced.owed.pop(client.our_stream_id.get(event.stream_id, 0), None)


class PacedClient(_Paced, Http2Client):
    """The side that faces a server."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.h2_conn.local_settings.enable_push = 0  # as mitmproxy has it
        self.h2_conn.local_settings.acknowledge()

    def is_clogged(self, stream_id: int) -> bool:
        server = self.crossing.server
        return server is not None and server.hold(self.their_stream_id[stream_id], self.conn)

    def number_of(self, stream_id: int) -> int:
        return self.their_stream_id[stream_id]

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, _Taken):
            ours = self.our_stream_id.get(event.stream_id)
            if ours is not None:
                yield from self.give(ours)
            return
        if isinstance(event, RequestHeaders):
            self.crossing.clients[event.stream_id] = self
        yield from super()._handle_event(event)
        if isinstance(event, events.DataReceived):
            yield from self.release()


def takes_all() -> bool:
    """True when this mitmproxy lets a server send a stream without end, whatever the client takes."""
    return BufferedH2Connection(Http2Client.h2_conf).local_settings.initial_window_size > 2 * WINDOW
