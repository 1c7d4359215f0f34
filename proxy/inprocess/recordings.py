"""A recording of this interpreter: `with record(path)`. The wire is the recorder's own, in the background's loop.

Clients are led to the wire by a bridge (`bridging`), which speaks TLS for them.
"""

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, cast

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.proxy.inprocess.bridging import bridge
from tapeproxy.proxy.inprocess.children import Reports
from tapeproxy.proxy.inprocess.clamp import ROOT, Clamp, ClampSettings, enter, is_shimmed
from tapeproxy.proxy.inprocess.flows import Gone
from tapeproxy.proxy.inprocess.heard import Heard
from tapeproxy.proxy.inprocess.redirects import lead, let_go
from tapeproxy.proxy.inprocess.routes import Origin, Pipe
from tapeproxy.proxy.inprocess.turns import Turns
from tapeproxy.proxy.inprocess.words import rules_of
from tapeproxy.proxy.processes import RunProcesses, listens
from tapeproxy.proxy.recorded import Recorded, RecordSettings, Within
from tapeproxy.proxy.recording import recording
from tapeproxy.proxy.shimming import new_seed
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.tapes.errors import TapeproxyError, TapeWriteError
from tapeproxy.tapes.hosts import is_loopback


class Record:
    """An open recording, as a context manager, plain or async; it is entered once. `recorded` says what came of it.

    While it is open every HTTP client of this interpreter is taped, also one that was made before. Servers that this
    process or its children run on loopback are not. Needs mitmproxy: the extra `record`.
    """

    _turns = Turns()

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        hosts: Mapping[str, str] | None = None,
        upstream_ca: str | os.PathLike[str] | None = None,
        rules: Iterable[str] = (),
    ) -> None:
        """`force` replaces a tape that is there. `hosts` are `--map` rules: host or host:port to base URL."""
        self.path = Path(path)
        self.recorded: Recorded
        self._settings = RecordSettings(
            tape=self.path,
            argv=(),
            environment=dict(os.environ),
            cwd=os.getcwd(),  # noqa: PTH109 - as text
            force=force,
            hosts=dict(hosts or {}),
            upstream_ca=None if upstream_ca is None else Path(upstream_ca),
            shim=False,
            rules=rules_of(rules),
            within=self._within(),
        )
        self._clamp = self._clamped()
        self._port = 0
        self._trust: ssl.SSLContext
        self._ended: asyncio.Event
        self._bridges: set[asyncio.Task[None]] = set()
        self._result: Future[Recorded]
        self._closed = True
        self._opened = self._late = self._parked = False
        self._session: Session
        self.failure: TapeproxyError | None = None
        """Why a recording that was to be opened late could not be."""
        self._lock = threading.Lock()
        self._children = RunProcesses("", root=os.getpid())

    def _within(self) -> Within | None:
        if is_shimmed():
            return None
        return Within(seed=new_seed(), origin_ns=time.time_ns() - time.monotonic_ns(), events=Heard())

    def _clamped(self) -> Clamp | None:
        within = self._settings.within
        if within is None:
            return None
        take = cast(Heard, within.events).take
        return Clamp(ClampSettings(mode="record", seed=within.seed, origin_ns=within.origin_ns, take=take))

    def __enter__(self) -> Self:
        """Raises TapeExistsError, TapeWriteError, CaError and UsageError, which also says that mitmproxy is missing."""
        self.open()
        try:
            self.resume()
        except BaseException:
            self.finish()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raises TapeWriteError where the tape is not whole."""
        self.suspend()
        try:
            self.finish()
        except TapeWriteError:
            if error is None:
                raise

    def open(self) -> None:
        """Create the tape and start the wire; `resume` begins. Raises what `with` does."""
        Record._turns.take(self)
        try:
            self._open()
        except BaseException:
            Record._turns.end(self)
            raise

    def open_late(self) -> None:
        """Have `open` done by the first request: where there is none, there is no tape, and mitmproxy is not needed.

        What `open` raises is raised by `finish` then.
        """
        self._late = True

    @property
    def opened(self) -> bool:
        """Whether there is a tape."""
        return self._opened

    def _open(self) -> None:
        opened: Future[None] = Future()
        self._result = Background.get().submit(self._record(opened))
        opened.result()
        self._opened = True

    def resume(self, root: str = ROOT) -> None:
        """Lead this interpreter's clients here, and tape its clock; the flow that calls is the lane `root`.

        Raises UsageError where the clock is another tape's, or another recording is under way.
        """
        if self._opened:
            Record._turns.take(self)
            if self._parked:
                Background.get().run(self._session.go_on())
                self._port, self._parked = self._session.port, False
        self._closed = False
        lead(self)
        enter(self._clamp, root, self.suspend)

    def suspend(self) -> None:
        """Let them go."""
        if self._clamp is not None:
            self._clamp.leave(Gone(None, str(self.path)))
        with self._lock:
            self._closed = True
        let_go(self)

    @property
    def suspended(self) -> bool:
        """Whether it has no use for its wire."""
        return self._closed

    def park(self) -> None:
        """Give up the wire until it is resumed."""
        Background.get().run(self._session.pause())
        self._parked = True

    def finish(self) -> Recorded:
        """End the wire, then the tape. Raises TapeWriteError where that is not whole, and what a late `open` raised."""
        if self.failure is not None:
            raise self.failure
        Background.get().call(self._ended.set)
        try:
            self.recorded = self._result.result()
        finally:
            Record._turns.end(self)
        if self.recorded.failure is not None:
            raise TapeWriteError(f"the tape is not whole: {self.recorded.failure}", where=str(self.path))
        return self.recorded

    async def __aenter__(self) -> Self:
        from anyio import to_thread

        await to_thread.run_sync(self.open)
        self.resume()  # here, for this flow is the one that is taped
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from anyio import to_thread

        self.suspend()
        try:
            await to_thread.run_sync(self.finish)  # in a thread: answers that are under way go on meanwhile
        except TapeWriteError:
            if error is None:
                raise

    # --- a route (`routes.Route`) ------------------------------------------------------------------------------

    def takes(self, host: str, port: int) -> bool:
        """All but the servers that this process and its children run."""
        return not is_loopback(host) or not (listens(os.getpid(), port) or self._children.owns_port(port))

    def serve(self, far: socket.socket, origin: Origin, near: Pipe, direct: bool) -> None:
        """Bridge it to the wire."""
        far.setblocking(False)
        with self._lock:
            if self._closed:
                far.close()
                raise BrokenPipeError("the recording that this connection belongs to is over")
            if self._late and not self._opened:
                self._open_now(far)
            Background.get().submit(self._bridge(far, origin))

    def _open_now(self, far: socket.socket) -> None:
        if self.failure is None:
            try:
                self.open()
            except TapeproxyError as error:
                self.failure = error
        if self.failure is not None:
            far.close()
            raise ConnectionRefusedError(str(self.failure)) from self.failure

    lets_children = True
    children = Reports()
    """Nothing is refused while it is recorded."""

    def refuses(self, what: str) -> None:
        """Nothing is."""

    def reaches_out(self, kind: str, host: str, port: int) -> str:
        """While it is recorded everything may."""
        return ""

    # --- in the background -------------------------------------------------------------------------------------

    async def _record(self, opened: Future[None]) -> Recorded:
        self._ended = asyncio.Event()
        try:
            self._trust = ssl.create_default_context(cafile=str(CertificateAuthority.open().certificate))
            async with self._wired() as session:
                self._session, self._port = session, session.port
                opened.set_result(None)
                await self._ended.wait()
                result = await session.finish(None)
        except BaseException as error:
            if not opened.done():
                opened.set_exception(error)
            raise
        for task in self._bridges:
            task.cancel()
        return result

    def _wired(self) -> "AbstractAsyncContextManager[Session]":
        return recording(self._settings)

    async def _bridge(self, far: socket.socket, origin: Origin) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._bridges.add(task)
        try:
            await bridge(far, origin, self._port, self._trust)
        finally:
            self._bridges.discard(task)


record = Record


class Session(Protocol):
    """A wire on a port, and its tape."""

    @property
    def port(self) -> int: ...

    async def finish(self, outcome: Outcome | None) -> Recorded:
        """End both."""
        ...

    async def pause(self) -> None:
        """End the wire alone."""

    async def go_on(self) -> None:
        """Have one again, on another port."""
