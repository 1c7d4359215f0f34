"""A record wire in a thread, with its tape file: what tests of recording talk through."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import anyio
import httpx
from authority import Authority
from origin import PATIENCE

from tapeproxy.addons.tape import Tape
from tapeproxy.proxy.recordwire import RecordWire
from tapeproxy.proxy.tapefile import TapeWriter, load, read_entries
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.exchanges import Tape as WholeTape
from tapeproxy.tapes.records import Head, Record
from tapeproxy.tapes.redaction import Redactor

KEY = bytes(range(32))


class Recording:
    """As a context manager: a wire on `port`, taping to `path`; the tape is sealed when it is left.

    Everything `WireOptions` knows can be given. `tape` wraps the writer, to spy or to fail.
    """

    def __init__(
        self,
        folder: Path,
        authority: Authority,
        *,
        redactor: Redactor | None = None,
        is_inside: Callable[[int], bool] = lambda _port: False,
        tape: Callable[[TapeWriter], Tape] = lambda writer: writer,
        drain: float = PATIENCE,
        head: Head | None = None,
        **options: Any,
    ) -> None:
        self.path = folder / "run.tape.jsonl.gz"
        self.port = 0
        self.authority = authority
        self._writer = TapeWriter(self.path, head or Head())
        self.wire = RecordWire(
            WireOptions(confdir=authority.folder, **options), tape(self._writer), redactor or Redactor(KEY), is_inside
        )
        self._drain = drain
        self._portal = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop
        self._done: anyio.Event
        self._thread = threading.Thread(target=self._main, name="wire")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.Client:
        """An httpx client behind the wire that trusts the wire's authority."""
        return httpx.Client(
            proxy=self.url, verify=self.authority.trusting(), trust_env=False, timeout=PATIENCE, **options
        )

    def connect(self) -> socket.socket:
        """A bare connection to the wire."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def tunnel(self, host: str, port: int, context: ssl.SSLContext | None = None) -> socket.socket:
        """A connection through CONNECT, in the clear or (with a context) in TLS."""
        sock = self.connect()
        sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        answer = read_until(sock, b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        return context.wrap_socket(sock, server_hostname=host) if context else sock

    def records(self, kind: type[Record] | None = None) -> list[Any]:
        """What is on disk at this moment."""
        return [e.record for e in read_entries(self.path) if kind is None or isinstance(e.record, kind)]

    def tape(self) -> WholeTape:
        """The finished tape, once the recording has been left."""
        return load(self.path)[0]

    def exchange(self) -> Exchange:
        """The only exchange of the finished tape."""
        (exchange,) = self.tape().exchanges
        return exchange

    def __enter__(self) -> Self:
        self._thread.start()
        self._portal.wait(PATIENCE)
        if self._error is not None:
            self._thread.join()
            raise self._error
        return self

    def finish(self) -> None:
        """Begin to drain and stop the wire, as leaving it does."""
        self._loop.call_soon_threadsafe(self._done.set)

    def join(self) -> None:
        """Wait until the wire has stopped and the tape is sealed."""
        self._thread.join(3 * PATIENCE)

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.finish()
        self.join()
        if self._error is not None:
            raise self._error

    def _main(self) -> None:
        try:
            anyio.run(self._serve)
        except BaseException as error:
            self._error = error
            self._portal.set()

    async def _serve(self) -> None:
        self._loop, self._done = asyncio.get_running_loop(), anyio.Event()
        try:
            self.port = await self.wire.start()
            self._portal.set()
            await self._done.wait()
            await self.wire.drain(self._drain)
        finally:
            await self.wire.stop()
            self._writer.seal(trace="", outcome="complete")


def read_until(sock: socket.socket, end: bytes) -> bytes:
    """Bytes from a socket up to and with `end`, or up to its close."""
    data = b""
    while not data.endswith(end) and (more := sock.recv(1)):
        data += more
    return data


def read_all(sock: socket.socket) -> bytes:
    """Bytes from a socket up to its close."""
    data = b""
    while more := sock.recv(65536):
        data += more
    return data
