"""A small HTTP server whose handler decides every write; knows bytes and sockets, nothing of what is answered.

The handler gets an `Exchange`: one request, and the verbs `start`, `send`, `finish`, `cut`, `reset`. Each `send` is one
write to the socket and, when the response is chunked, one chunk: so a test decides where the boundaries fall. HTTP/2 is
spoken where TLS has agreed on it (`http2`), with the same verbs.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

import httptools

from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.testing.inbox import Inbox, Request
from tapeproxy.testing.sockets import ServerSocket

type Headers = Iterable[tuple[str, str]]

_READ_SIZE = 64 * 1024
_TURNS_TO_ACCEPT = 4
# Zero seconds of lingering turns a close into a TCP reset.
_LINGER_NONE = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ListenError(TapeproxyError):
    """The fake provider could not listen on `host`:`port`: in use, not permitted, or no such address."""

    def __init__(self, host: str, port: int, reason: OSError) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"the fake provider cannot listen: {reason.strerror or reason}",
            where=f"{host}:{port}",
            fix="choose another port, or port 0 for a free one",
        )


class Exchange(ABC):
    """One request and the response being written to it. Verbs raise ConnectionError when the client has left."""

    request: Request

    @abstractmethod
    async def start(self, status: int, headers: Headers = (), *, length: int | None = None) -> None:
        """Write the head. With `length` the body is that many bytes."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Write `data` at once. Empty data writes nothing."""

    @abstractmethod
    async def finish(self) -> None:
        """End the response."""

    async def answer(self, status: int, headers: Headers = (), body: bytes = b"") -> None:
        """Write a whole response with a content-length."""
        await self.start(status, headers, length=len(body))
        await self.send(body)
        await self.finish()

    @abstractmethod
    async def switch(self, protocol: str = "") -> ServerSocket:
        """Become a WebSocket, if the request asks for one."""

    @abstractmethod
    def cut(self) -> None:
        """Break off with the response unfinished; what was sent is delivered first."""

    @abstractmethod
    def reset(self) -> None:
        """Break the connection with a TCP reset; what was not yet delivered is lost."""


def reset_connection(writer: asyncio.StreamWriter) -> None:
    """Close it with a TCP reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
    writer.transport.abort()


@dataclass(slots=True)
class Http1Exchange(Exchange):
    """The verbs in HTTP/1.1, one exchange after the other on a connection."""

    request: Request
    _writer: asyncio.StreamWriter
    _reader: asyncio.StreamReader | None = None
    _chunked: bool = False
    _bodyless: bool = False
    _closing: bool = False
    _started: bool = field(default=False, init=False)
    _finished: bool = field(default=False, init=False)

    async def start(self, status: int, headers: Headers = (), *, length: int | None = None) -> None:
        """Write the head. With `length` the body is that many bytes; without, it is chunked (until close on 1.0)."""
        self._bodyless = self.request.method == "HEAD" or status in (204, 304)
        self._chunked = length is None and not self._bodyless and self.request.version == "1.1"
        self._closing = not self.request.keep_alive or (length is None and self.request.version == "1.0")
        lines = [f"HTTP/1.1 {status} {_reason(status)}", *(f"{name}: {value}" for name, value in headers)]
        if self._chunked:
            lines.append("transfer-encoding: chunked")
        elif length is not None:
            lines.append(f"content-length: {length}")
        lines.append(f"connection: {'close' if self._closing else 'keep-alive'}")
        self._started = True
        await self._write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(self, data: bytes) -> None:
        """Write `data` at once, as one chunk when the response is chunked. Empty data writes nothing."""
        if not data or self._bodyless:
            return
        await self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def finish(self) -> None:
        """End the response; the connection stays open unless someone asked to close it."""
        self._finished = True
        if self._chunked:
            await self._write(b"0\r\n\r\n")

    async def switch(self, protocol: str = "") -> ServerSocket:
        """Become a WebSocket, if the request asks for one; the connection ends with the handler."""
        assert self._reader is not None
        self._closing = True
        socket = ServerSocket(self._reader, self._writer)
        await socket.accept(self.request, protocol)
        return socket

    def cut(self) -> None:
        """Close the connection with the response unfinished; what was sent is delivered first."""
        self._closing = True
        self._writer.close()

    def reset(self) -> None:
        """Break the connection with a TCP reset; what was not yet delivered is lost."""
        self._closing = True
        reset_connection(self._writer)

    @property
    def reusable(self) -> bool:
        """Whether another request may follow on this connection."""
        return self._finished and not self._closing

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


type Handler = Callable[[Exchange], Awaitable[None]]


@dataclass(slots=True)
class Server:
    """Listens on one address and hands every exchange to `handle`, in HTTP/1.1 one at a time for each connection.

    HTTP/2 is spoken where `tls` offers it by ALPN (`SSLContext.set_alpn_protocols`) and the client does, too.
    An exception in the handler is a bug: asyncio's exception handler reports it and the connection is closed.
    """

    handle: Handler
    _listener: asyncio.Server | None = None
    _connections: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Start listening (port 0: any free one) and return the port; raises ListenError."""
        try:
            self._listener = await asyncio.start_server(self._accept, host, port, ssl=tls)
        except OSError as error:
            raise ListenError(host, port, error) from error
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def aclose(self) -> None:
        """Stop listening and drop every connection, mid-response or not."""
        if self._listener is None:
            return
        await _stop_accepting(self._listener)
        # A connection that was accepted a moment ago takes two turns of the loop to get here, and one to be dropped.
        # Server.wait_closed of 3.12 would wait for a TLS handshake that its client never makes.
        for _ in range(_TURNS_TO_ACCEPT):
            for task, writer in self._connections.items():
                task.cancel()
                writer.transport.abort()
            await asyncio.sleep(0)
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not a coroutine: start_server of CPython 3.12.1 trips over a callback task that was cancelled.
        task = asyncio.create_task(_serve(reader, writer, self.handle))
        self._connections[task] = writer
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._connections[task]
        if not task.cancelled() and (error := task.exception()):
            context = {"message": "the handler of the fake provider failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)


async def _stop_accepting(listener: asyncio.Server) -> None:
    """Close the listener without losing a connection that is just being accepted: asyncio would leave it open."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # the Windows loop has no readers
        for sock in listener.sockets:
            loop.remove_reader(sock)
    await asyncio.sleep(0)
    listener.close()
    if sys.version_info >= (3, 13):
        listener.abort_clients()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler) -> None:
    try:
        # A client that leaves, or that talks plain HTTP to a TLS port, ends its own connection and nothing else.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            secure = writer.get_extra_info("ssl_object")
            if secure is not None and secure.selected_alpn_protocol() == "h2":
                from tapeproxy.testing import http2

                await http2.talk(reader, writer, handle)
            else:
                await _talk(reader, writer, handle)
    finally:
        writer.close()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler) -> None:
    inbox = Inbox()
    while True:
        while inbox.ready:
            exchange = Http1Exchange(inbox.ready.popleft(), writer, reader)
            await handle(exchange)
            if not exchange.reusable:
                return
        data = await reader.read(_READ_SIZE)
        if not data:
            return
        try:
            inbox.feed(data)
        except httptools.HttpParserError as error:
            refused = Http1Exchange(Request("GET", "/", (), b"", keep_alive=False), writer)
            await refused.answer(400, [("content-type", "text/plain")], f"not an HTTP request: {error}\n".encode())
            return
        if inbox.expects_continue:
            inbox.expects_continue = False
            writer.write(_CONTINUE)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return {529: "Overloaded"}.get(status, "Unknown")
