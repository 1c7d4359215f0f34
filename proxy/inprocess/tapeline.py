"""A client of this very process at the tape server: no CONNECT, no TLS, the origin is known from the start."""

import asyncio
import contextlib
import socket
import threading
import weakref
from typing import Any, cast

from tapeproxy.proxy.connection import ESTABLISHED, Connection
from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.proxy.inprocess.flows import outside
from tapeproxy.proxy.inprocess.routes import Origin, Pipe
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.violations import Violation


class TapeLine(Connection):
    """The far end of a pipe. A client that was told to use a proxy may ask for a tunnel: it gets it, in the clear."""

    def __init__(self, server: TapeServer, origin: Origin, near: Pipe, lock: threading.RLock) -> None:
        """`lock` is held whenever the tape is asked: some lines are served in the thread of their client."""
        super().__init__(server)
        self._lock = lock
        self.loop = server.loop
        self.origin = origin.url.encode()
        self.authority = origin.authority.encode()
        self._tunnel_open = True
        self._near = weakref.ref(near)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket = cast(socket.socket, _Lever(self._near))
        self._server.connections.add(self)

    def buffer_updated(self, nbytes: int) -> None:
        with self._lock:
            super().buffer_updated(nbytes)

    def feed(self, data: bytes) -> None:
        """Take what the client sent, in its own thread, and answer there."""
        with self._lock, outside():
            try:
                self._receive(data)
            except Exception as error:
                self.talk.fail(error)

    def hang_up(self) -> None:
        """The client has left."""
        with self._lock, outside():
            self.abort()

    def absolute(self, url: bytes, headers: Headers) -> bytes:
        # What a client sends to its proxy says itself where it is to go.
        scheme, separator, _ = url.partition(b"://")
        return url if separator and scheme.isalpha() else super().absolute(url, headers)

    def connect(self, authority: bytes) -> Violation | None:
        self.origin = b"https://" + authority.removesuffix(b":443")
        self.authority = authority
        self._transport.write(ESTABLISHED)
        return None


class _Lever:
    """What the connection sets on its socket: a pair knows no TCP, and is reset by closing it with bytes unread."""

    def __init__(self, near: "weakref.ref[Pipe]") -> None:
        self._near = near

    def setsockopt(self, level: int, name: int, value: object) -> None:
        near = self._near()
        if (level, name) == (socket.SOL_SOCKET, socket.SO_LINGER) and near is not None and near.fileno() >= 0:
            with contextlib.suppress(OSError):
                socket.socket.send(near, b"\0")


class DirectTransport:
    """Answers without an event loop: written at once, and by the loop only what the pair does not hold."""

    def __init__(self, far: socket.socket, line: TapeLine, lock: threading.RLock) -> None:
        self._far = far
        self._line = line
        self._loop = line.loop
        self._lock = lock
        self._backlog = bytearray()
        self._ending = False

    def write(self, data: Any) -> None:
        """Send it, now or as soon as there is room."""
        if self._ending:
            return
        waiting = bool(self._backlog)
        self._backlog += data
        if not waiting:
            self._flush()
            if self._backlog:
                Background.get().call(self._wait)

    def close(self) -> None:
        """End the connection when all is sent."""
        self._ending = True
        if not self._backlog:
            self.abort()

    def abort(self) -> None:
        """End the connection now."""
        self._ending = True
        if self._far.fileno() < 0:
            return
        if self._backlog:
            self._backlog.clear()
            Background.get().call(self._loop.remove_writer, self._far.fileno())
        self._far.close()
        self._line.connection_lost(None)

    def pause_reading(self) -> None:
        """Nothing is read ahead."""

    def resume_reading(self) -> None:
        """Nothing is read ahead."""

    def _flush(self) -> None:
        try:
            while self._backlog:
                del self._backlog[: self._far.send(self._backlog)]
        except BlockingIOError:
            return
        except OSError:  # the client has left
            self._backlog.clear()

    def _wait(self) -> None:
        with self._lock:
            if self._far.fileno() >= 0:
                self._loop.add_writer(self._far.fileno(), self._go_on)

    def _go_on(self) -> None:
        with self._lock:
            if self._far.fileno() < 0:
                return
            self._flush()
            if not self._backlog:
                self._loop.remove_writer(self._far.fileno())
                if self._ending:
                    self.abort()
