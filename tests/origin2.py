"""A server for tests that speaks HTTP/2, whose handler decides every frame. Its sibling is `origin`.

    async def answer(call: Call) -> None:
        await call.head(200, ("content-type", "text/plain"))
        await call.data(b"one")
        await call.trailers(("grpc-status", "0"))

    with Origin2(answer, tls) as origin:
        ...

It runs on a loop of its own in a thread. A handler that raises fails the test when the origin is left.
"""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from origin import PATIENCE, Gate

type Pairs = tuple[tuple[str, str], ...]
type Handler2 = Callable[["Call"], Awaitable[None]]


class Call:
    """One request, and what a handler may do about it. `pieces` has its body as it comes, None at its end."""

    def __init__(self, line: "_Line", number: int, headers: Pairs) -> None:
        self.line = line
        self.number = number
        self.method = dict(headers)[":method"]
        self.path = dict(headers)[":path"]
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

    async def wait(self, gate: Gate) -> None:
        """Wait until the test opens the gate."""
        await asyncio.get_running_loop().run_in_executor(None, gate.passed)

    async def head(self, status: int, *headers: tuple[str, str], end: bool = False) -> None:
        self.line.h2.send_headers(self.number, [(":status", str(status)), *headers], end_stream=end)
        await self.line.flush()

    async def data(self, data: bytes, *, end: bool = False) -> None:
        """Send a piece in frames as large as the windows allow."""
        conn = self.line.h2
        while True:
            room = min(conn.local_flow_control_window(self.number), conn.max_outbound_frame_size)
            if room <= 0 and data:
                self.line.more.clear()
                await asyncio.wait_for(self.line.more.wait(), PATIENCE)
                continue
            piece, data = data[:room], data[room:]
            conn.send_data(self.number, piece, end_stream=end and not data)
            await self.line.flush()
            if not data:
                return

    async def trailers(self, *headers: tuple[str, str]) -> None:
        self.line.h2.send_headers(self.number, list(headers), end_stream=True)
        await self.line.flush()

    async def reset(self, code: int) -> None:
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
            sock = self.line.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.line.writer.transport.abort()


class _Line:
    """One connection."""

    def __init__(self, origin: "Origin2", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        self.writer = writer
        self.more = asyncio.Event()
        self._origin = origin
        self._reader = reader
        self._calls: dict[int, Call] = {}

    async def serve(self) -> None:
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 24)
        await self.flush()
        while data := await self._reader.read(1 << 16):
            for event in self.h2.receive_data(data):
                self._hear(event)
            await self.flush()

    def _hear(self, event: Any) -> None:
        match event:
            case h2.events.RequestReceived():
                headers = tuple((str(name), str(value)) for name, value in event.headers)
                call = self._calls[event.stream_id] = Call(self, event.stream_id, headers)
                self._origin.start(call)
            case h2.events.DataReceived():
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self._calls[event.stream_id].pieces.put_nowait(event.data)
            case h2.events.StreamEnded():
                self._calls[event.stream_id].pieces.put_nowait(None)
            case h2.events.StreamReset():
                self._calls[event.stream_id].reset_by_client = event.error_code
                self._calls[event.stream_id].pieces.put_nowait(None)
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self.more.set()
            case _:
                pass

    async def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()


class Origin2:
    """A context manager; `calls` are all requests, `url` where it listens, `lines` how many connections there were."""

    def __init__(self, answer: Handler2, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.calls: list[Call] = []
        self.lines = 0
        self.port = port
        self._answer = answer
        self._tls = tls
        if tls is not None:
            tls.set_alpn_protocols(["h2", "http/1.1"])
        self._errors: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="origin2")

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(PATIENCE)
        if self._errors:
            raise self._errors[0]

    def start(self, call: Call) -> None:
        """Answer a request."""
        self.calls.append(call)
        task = self._loop.create_task(self._handle(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, call: Call) -> None:
        try:
            await self._answer(call)
        except (ConnectionError, ProtocolError, ssl.SSLError):
            pass  # the client is gone
        except Exception as error:
            self._errors.append(error)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        talk = writer.get_extra_info("ssl_object")
        try:
            if talk is None or talk.selected_alpn_protocol() == "h2":
                self.lines += 1
                await _Line(self, reader, writer).serve()
        except (ConnectionError, ssl.SSLError, ProtocolError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        self._done = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._done.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=PATIENCE)
