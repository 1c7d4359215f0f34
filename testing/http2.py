"""A server's end of HTTP/2: the calls of one connection, and the verbs of an `Exchange` over one of them.

Knows frames by way of h2; who accepts the connection, and what is answered, is the caller's. Imported when a client
speaks HTTP/2, not before.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any, Final

import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from tapeproxy.testing.inbox import Request
from tapeproxy.testing.sockets import ServerSocket
from tapeproxy.testing.wire import Exchange, Handler, Headers, reset_connection

type Pairs = tuple[tuple[str, str], ...]

_READ_SIZE: Final = 64 * 1024
_WINDOW: Final = 1 << 24


class Call:
    """One request, and its answer frame by frame. `pieces` has its body as it comes, None at its end.

    Verbs raise ProtocolError when the client has taken the request back, ConnectionError when it has left.
    """

    def __init__(self, line: "Line[Any]", number: int, headers: Pairs) -> None:
        self.line = line
        self.number = number
        self.method = dict(headers)[":method"]
        self.path = dict(headers).get(":path", "")
        self.headers = tuple(pair for pair in headers if not pair[0].startswith(":"))
        self.authority = dict(headers).get(":authority", "")
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.reset_by_client: int | None = None

    async def body(self) -> bytes:
        """The whole body."""
        out = b""
        while (piece := await self.pieces.get()) is not None:
            out += piece
        return out

    async def head(self, status: int, *headers: tuple[str, str], end: bool = False) -> None:
        """Send a head; one of 1xx may come before another."""
        self.line.h2.send_headers(self.number, [(":status", str(status)), *headers], end_stream=end)
        await self.line.flush()

    async def data(self, data: bytes, *, end: bool = False) -> None:
        """Send a piece in frames as large as the windows allow."""
        frames = self.line.h2
        while True:
            room = min(frames.local_flow_control_window(self.number), frames.max_outbound_frame_size)
            if room <= 0 and data:
                self.line.more.clear()
                await self.line.more.wait()
                continue
            piece, data = data[:room], data[room:]
            frames.send_data(self.number, piece, end_stream=end and not data)
            await self.line.flush()
            if not data:
                return

    async def trailers(self, *headers: tuple[str, str]) -> None:
        """End the answer with fields."""
        self.line.h2.send_headers(self.number, list(headers), end_stream=True)
        await self.line.flush()

    async def reset(self, code: int) -> None:
        """Break this answer off, and no other."""
        self.line.h2.reset_stream(self.number, code)
        await self.line.flush()

    async def leave(self, last: int) -> None:
        """Say that no stream after `last` will be answered (GOAWAY)."""
        from hyperframe.frame import GoAwayFrame

        self.line.writer.write(GoAwayFrame(0, last_stream_id=last).serialize())
        await self.line.writer.drain()

    def cut(self, *, reset: bool = False) -> None:
        """End the connection below all of its streams."""
        if reset:
            reset_connection(self.line.writer)
        else:
            self.line.writer.transport.abort()


class Line[C: Call]:
    """One connection: `serve` it until the client leaves. `begin` gets each call, of `kind`, when its head has come."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: type[C], begin: Callable[[C], object]
    ) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        self.writer = writer
        self.more = asyncio.Event()
        """Set when the client's windows may have grown, or a stream has ended."""
        self._kind = kind
        self._begin = begin
        self._reader = reader
        self._calls: dict[int, C] = {}

    async def serve(self) -> None:
        """Hear and answer. Raises ProtocolError on what is no HTTP/2."""
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(_WINDOW)
        await self.flush()
        while data := await self._reader.read(_READ_SIZE):
            for event in self.h2.receive_data(data):
                self._hear(event)
            await self.flush()

    def _hear(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                headers = tuple((str(name), str(value)) for name, value in event.headers)
                call = self._calls[event.stream_id] = self._kind(self, event.stream_id, headers)
                if ("expect", "100-continue") in headers:
                    self.h2.send_headers(event.stream_id, [(":status", "100")])
                self._begin(call)
            case h2.events.DataReceived():
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self._calls[event.stream_id].pieces.put_nowait(event.data)
            case h2.events.StreamEnded():
                self._calls[event.stream_id].pieces.put_nowait(None)
            case h2.events.StreamReset():
                call = self._calls[event.stream_id]
                call.reset_by_client = event.error_code
                call.pieces.put_nowait(None)
                self.more.set()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self.more.set()
            case _:
                pass

    def push(self) -> None:
        """Write the frames that are ready, without waiting."""
        self.writer.write(self.h2.data_to_send())

    async def flush(self) -> None:
        """Write them, and wait until the client takes more."""
        self.push()
        await self.writer.drain()


class Http2Exchange(Exchange):
    """The verbs over one call. Other answers share its connection, so `cut` breaks off this one alone."""

    def __init__(self, request: Request, call: Call) -> None:
        self.request = request
        self._call = call
        self._bodyless = False

    async def start(self, status: int, headers: Headers = (), *, length: int | None = None) -> None:
        """Send the head, with `length` as its content-length."""
        self._bodyless = self.request.method == "HEAD" or status in (204, 304)
        said = [] if length is None else [("content-length", str(length))]
        await self._call.head(status, *((name.lower(), value) for name, value in headers), *said, end=self._bodyless)

    async def send(self, data: bytes) -> None:
        """Send `data` at once, in one frame where the client's windows allow it. Empty data sends nothing."""
        if data and not self._bodyless:
            await self._call.data(data)

    async def finish(self) -> None:
        """End the stream."""
        if not self._bodyless:
            await self._call.data(b"", end=True)

    async def switch(self, protocol: str = "") -> ServerSocket:
        """HTTP/2 has no Upgrade."""
        raise TypeError("a stream of HTTP/2 does not become a WebSocket")

    def cut(self) -> None:
        """Reset the stream; what was sent is delivered first."""
        line = self._call.line
        line.h2.reset_stream(self._call.number, ErrorCodes.INTERNAL_ERROR)
        line.push()

    def reset(self) -> None:
        """Break the connection with a TCP reset, and with it the other answers."""
        self._call.cut(reset=True)


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler) -> None:
    """Hand each request of a connection to `handle` when it is whole, and as many at once as the client makes."""

    async def answer(call: Call) -> None:
        body = await call.body()
        with contextlib.suppress(ConnectionError, ssl.SSLError, ProtocolError):  # the client has no use for it any more
            await handle(Http2Exchange(_request(call, body), call))

    async with asyncio.TaskGroup() as group:
        tasks = list[asyncio.Task[None]]()
        with contextlib.suppress(ProtocolError):
            await Line(reader, writer, Call, lambda call: tasks.append(group.create_task(answer(call)))).serve()
        for task in tasks:
            task.cancel()


def _request(call: Call, body: bytes) -> Request:
    host = (("host", call.authority),) if call.authority else ()
    return Request(call.method, call.path, (*host, *call.headers), body, version="2")
