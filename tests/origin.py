"""A server for tests whose handler decides every write. Knows HTTP/1.1 requests; what is answered is the handler's.

    async def answer(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"one")
        await call.wait(second)          # a Gate that the test opens
        await call.chunk(b"two")
        await call.last_chunk()

    with Origin(answer) as origin:
        httpx.get(f"{origin.url}/path")

It runs on a loop of its own in a thread. A handler that raises fails the test when the origin is left; a client that
hangs up is no error. Nothing waits longer than `PATIENCE` seconds.
"""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self

PATIENCE = 10.0

_LINGER_NONE = struct.pack("ii", 1, 0)
_GONE = (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError)


class Gate:
    """Something that handlers wait for and a test lets happen, or the other way round."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    def passed(self) -> None:
        """Block this thread until the gate is open. Raises TimeoutError."""
        if not self._open.wait(PATIENCE):
            raise TimeoutError("nobody opened the gate")


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived: header names as they came, the body without its chunked framing."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    trailers: tuple[tuple[str, str], ...]
    connection: int

    def header(self, name: str) -> str | None:
        """The first header of this name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Call:
    """One request and its connection: the handler's verbs. Each `send` is one write."""

    def __init__(self, request: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self.closed = False
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: str = "200 OK", *headers: str) -> None:
        """A status line and header lines."""
        lines = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers))
        await self.send(lines.encode("latin-1") + b"\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def last_chunk(self, *trailers: str) -> None:
        await self.send(b"0\r\n" + "".join(f"{line}\r\n" for line in trailers).encode() + b"\r\n")

    async def reply(self, body: bytes = b"", status: str = "200 OK", *headers: str) -> None:
        """A whole response with a Content-Length."""
        lines = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"))
        await self.send(lines.encode("latin-1") + b"\r\n" + body)

    async def read(self, size: int = 65536) -> bytes:
        """Bytes after the request, for upgraded connections; empty when the peer has closed."""
        return await asyncio.wait_for(self._reader.read(size), PATIENCE)

    async def wait(self, gate: Gate) -> None:
        await asyncio.to_thread(gate.passed)

    async def gone(self) -> None:
        """Wait until the peer has closed its side or reset the connection."""
        try:
            while await self.read():
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        """An orderly end (FIN), whatever was left to say."""
        self.closed = True
        self._writer.close()

    def reset(self) -> None:
        """An abrupt end (RST). What was sent before arrives if the peer reads it first."""
        self.closed = True
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self._writer.transport.abort()


type Handler = Callable[[Call], Awaitable[None]]


class Origin:
    """The server, as a context manager. `requests` are those that have arrived, in order."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.requests: list[Seen] = []
        self.connections = 0
        self.port = 0
        self._handler = handler
        self._tls = tls
        self._host = host
        self._errors: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="origin", daemon=True)
        self._server: asyncio.Server

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._errors:
            raise self._errors[0]

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._answer_all(reader, writer, self.connections)
        except _GONE:
            pass
        except Exception as error:
            self._errors.append(error)
        except asyncio.CancelledError:
            pass  # the origin is being left
        finally:
            if not writer.is_closing():
                writer.transport.abort()
            self._tasks.discard(task)

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            seen = await _read_request(reader, number)
            self.requests.append(seen)
            call = Call(seen, reader, writer)
            await self._handler(call)
            if call.closed:
                return


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Seen:
    head = await reader.readuntil(b"\r\n\r\n")
    request_line, _, lines = head.decode("latin-1").partition("\r\n")
    method, target, _ = request_line.split(" ")
    headers = _fields(lines)
    given = {name.lower(): value for name, value in headers}
    body, trailers = b"", ""
    if "chunked" in given.get("transfer-encoding", ""):
        body, trailers = await _read_chunks(reader)
    elif "content-length" in given:
        body = await reader.readexactly(int(given["content-length"]))
    return Seen(method, target, headers, body, _fields(trailers), connection)


def _fields(lines: str) -> tuple[tuple[str, str], ...]:
    parted = (line.partition(":") for line in lines.split("\r\n") if line)
    return tuple((name, value.strip()) for name, _, value in parted)


async def _read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, str]:
    body, trailers = bytearray(), ""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while (line := await reader.readline()) not in (b"\r\n", b""):
        trailers += line.decode("latin-1")
    return bytes(body), trailers
