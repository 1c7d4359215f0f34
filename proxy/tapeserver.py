"""The replay wire: listens on loopback and answers from a tape. It has no client side and imports no mitmproxy."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tapeproxy.proxy.connection import Connection
from tapeproxy.proxy.decisions import Asked, Decision
from tapeproxy.proxy.led import Led
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.tapes.errors import PortInUseError
from tapeproxy.tapes.records import Headers

IDLE_SECONDS = 600.0
BACKLOG = 512
"""Connections that may wait to be accepted."""
_POLL = 0.001
_READ = 1 << 18
"""Bytes taken from a socket at once: a large request is then decrypted and parsed in one go."""
_RECORD = 1 << 15
"""More than the largest TLS record, of which an earlier read may have left a part."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How a tape server serves. `speed`: None at once, 1.0 as recorded, 2.0 twice as fast. `port` 0: a free one."""

    host: str = "127.0.0.1"
    port: int = 0
    speed: float | None = None


@dataclass(slots=True)
class TapeServer:
    """One tape on one port.

    `tls_context` gives a server context for a host name, which would rather speak HTTP/2 or not; `is_inside` says
    whether a host and port is a server of the run; `before_request` is called before a request is decided; `refusals`
    collects the hosts whose certificate a client would not take, with the reason; `waiting` has the requests whose
    answers may still come on the tape, of one that is being read. `decide`: who is asked in place of the replayer. All
    connections read into one `inbox` and decrypt into one `room`: both stay in the processor's cache.
    """

    replayer: Replayer
    tls_context: Callable[[str, bool], ssl.SSLContext]
    is_inside: Callable[[str, int], bool]
    serving: Serving = field(default_factory=Serving)
    before_request: Callable[[], None] = lambda: None
    decide: Callable[[Asked], Decision] | None = None
    connections: set[Connection] = field(default_factory=set)
    refusals: dict[str, str] = field(default_factory=dict)
    waiting: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    inbox: memoryview = field(default_factory=lambda: memoryview(bytearray(_READ)))
    room: memoryview = field(default_factory=lambda: memoryview(bytearray(_READ + _RECORD)))
    loop: asyncio.AbstractEventLoop = field(init=False)
    _server: asyncio.Server | None = None
    _fronts: list[asyncio.Server] = field(default_factory=list[asyncio.Server])
    _led: Led | None = None
    _sweep: asyncio.TimerHandle | None = None
    _woken: float | None = None

    @property
    def speed(self) -> float | None:
        return self.serving.speed

    async def start(self) -> int:
        """Listen; returns the port. Raises PortInUseError."""
        self.loop = asyncio.get_running_loop()
        host, port = self.serving.host, self.serving.port
        try:
            self._server = await self.loop.create_server(lambda: Connection(self), host, port, backlog=BACKLOG)
        except OSError as error:
            raise PortInUseError(host, port, (error.strerror or str(error)).lower()) from None
        self._schedule_sweep()
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def open_front(self, port: int) -> int:
        """Listen on one more port, which stands in front of a URL; returns it. Raises PortInUseError."""
        host = self.serving.host
        try:
            front = await self.loop.create_server(lambda: Connection(self, is_front=True), host, port, backlog=BACKLOG)
        except OSError as error:
            raise PortInUseError(host, port, (error.strerror or str(error)).lower()) from None
        self._fronts.append(front)
        bound: int = front.sockets[0].getsockname()[1]
        return bound

    async def open_led(self, led: Led, loopback: Iterable[int]) -> None:
        """Serve all connections of this process's namespace too. Raises UsageError."""
        self._led = led
        await led.open(lambda led: Connection(self, led=led), loopback)

    def serve_others(self) -> None:
        """Listen nowhere: connections are brought by `take_over`."""
        self.loop = asyncio.get_running_loop()
        self._schedule_sweep()

    def take_over(self, transport: asyncio.Transport, data: bytes, check: Callable[[Headers], Headers | bytes]) -> None:
        """Serve a connection that somebody else has accepted; `data` came on it. `check`: see Connection."""
        connection = Connection(self, check)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        transport.resume_reading()
        while data and not transport.is_closing():
            room = connection.get_buffer(len(data))
            piece, data = data[: len(room)], data[len(room) :]
            room[: len(piece)] = piece
            connection.buffer_updated(len(piece))

    def look_again(self) -> None:
        """More of the tape is known: requests that wait for it are decided, or wait on."""
        waiting, self.waiting = self.waiting, []
        for look in waiting:
            look()

    def renew(self, replayer: Replayer, is_inside: Callable[[str, int], bool]) -> None:
        """Serve another replay from here on: nothing of the one before it is left but the port and the certificates."""
        self._drop()
        self.replayer, self.is_inside = replayer, is_inside
        self.before_request = lambda: None
        self.refusals = {}

    async def fall_silent(self, seconds: float) -> None:
        """Wait until the last client has left, at most `seconds`: what it has sent before is heard by then."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.connections:
                    await asyncio.sleep(_POLL)

    def _drop(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._sweep is not None:
            self._sweep.cancel()
        for listening in filter(None, (self._server, *self._fronts)):
            listening.close()
        if self._led is not None:
            self._led.close()
        self._drop()
        if self._server is not None:
            # A connection accepted while closing is never counted down (CPython 3.12), so the wait needs an end.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 1.0)

    def woken(self) -> float:
        """The time of the loop, and when pace matters the time at which it woke up to what it does now.

        So requests that come at the same moment count from the same moment, whichever of them is served first.
        """
        if self.serving.speed is None:
            return self.loop.time()
        if self._woken is None:
            self._woken = self.loop.time()
            self.loop.call_soon(self._sleep)
        return self._woken

    def _sleep(self) -> None:
        self._woken = None

    def refused_tls(self, host: str, error: ssl.SSLError) -> None:
        """A client broke off the handshake: usually it does not trust our certificate authority."""
        self.refusals.setdefault(self.replayer.redactor.text(host), error.reason or str(error))

    def _schedule_sweep(self) -> None:
        self._sweep = self.loop.call_later(IDLE_SECONDS / 10, self._sweep_idle)

    def _sweep_idle(self) -> None:
        limit = self.loop.time() - IDLE_SECONDS
        for connection in list(self.connections):
            if connection.last_heard < limit:
                connection.close_idle()
        self._schedule_sweep()
