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
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Self

from h2.exceptions import ProtocolError
from origin import PATIENCE, Gate

from tapeproxy.testing import http2

type Handler2 = Callable[["Call"], Awaitable[None]]


class Call(http2.Call):
    """One request, and what a handler may do about it."""

    async def wait(self, gate: Gate) -> None:
        """Wait until the test opens the gate."""
        await asyncio.get_running_loop().run_in_executor(None, gate.passed)


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
                await http2.Line(reader, writer, Call, self.start).serve()
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
