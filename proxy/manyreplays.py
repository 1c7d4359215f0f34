"""Many replays behind one port: each client is handed to the tape server of the run that it names. No mitmproxy.

A replay begins with the first client that names its tape, and ends when it is told to; then the tape can be replayed
again. A tape that nobody has asked for is not even opened.
"""

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.manyruns import Door, EndedRun, ManySettings, RunStatus
from tapeproxy.proxy.reception import Reception
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replaying import Replaying, Wire
from tapeproxy.proxy.tapeserver import BACKLOG, TapeServer
from tapeproxy.tapes.credentials import RefusedError
from tapeproxy.tapes.errors import PortInUseError, TapeproxyError
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.violations import Drift, Violation

_PLAIN_SUFFIX = ".jsonl.gz"
_LISTED = 20

type Noticed = Callable[[str, Violation | Drift], None]
"""Hears of violations and drifts as they happen, with the name of the run."""


@dataclass(slots=True)
class _Run:
    session: Replaying
    settings: ReplaySettings
    began: int
    """By time.monotonic_ns."""
    seen: float
    """When a client was last there, by time.monotonic."""


class ManyReplays:
    """The tapes of a folder, served at the same time. `refused` is told of every client that is turned away."""

    def __init__(self, settings: ManySettings, refused: Callable[[RefusedError], None], noticed: Noticed) -> None:
        self.door = Door(settings.host, settings.token)
        self.port = 0
        self._settings = settings
        self._refused = refused
        self._noticed = noticed
        self._servers: list[asyncio.Server] = []
        self._runs: dict[str, _Run] = {}
        self._opening: dict[str, asyncio.Task[_Run]] = {}

    async def start(self) -> None:
        """Listen. Raises PortInUseError."""
        self.port = await self._listen(self._settings.port)

    def names(self) -> dict[str, Path]:
        """What there is to replay."""
        try:
            found = sorted(path for path in self._settings.folder.iterdir() if path.name.endswith(_PLAIN_SUFFIX))
        except OSError:  # removed meanwhile
            return {}
        return {path.name.removesuffix(_PLAIN_SUFFIX).removesuffix(".tape"): path for path in found if path.is_file()}

    async def variables(self, name: str) -> dict[str, str]:
        """The environment for programs of the run `name`, which begins now if it has not.

        Raises RefusedError where there is no such tape, PortInUseError, and what `Wire.open` raises.
        """
        name = self._choose(name)
        if self._settings.ports and not self.door.port_of(name):
            self.door.give(await self._listen(0), name)
        run = await self._open(name, shim=True)
        return self.door.led_here(run.session.environment, name, self.port)

    async def finish(self, name: str) -> EndedRun | None:
        """End a replay; None: there is none of this name."""
        run = self._runs.pop(name, None)
        if run is None:
            return None
        await run.session.stop()
        session, settings = run.session, run.settings
        seal = session.tape.seal
        return EndedRun(
            name=name,
            replayed=session.verdict(settings, None, time.monotonic_ns() - run.began),
            replay=settings,
            taped_in=session.tape.head.cwd,
            sealed=session.ending is not None and session.ending.sealed,
            outcome="" if seal is None else seal.outcome,
        )

    async def finish_idle(self) -> list[EndedRun]:
        """End the replays that had no client for too long, and no process that has its variables."""
        now, idle = time.monotonic(), self._settings.idle
        for run in self._runs.values():
            session = run.session
            if session.server.connections or (now - run.seen > idle and session.processes.pids()):
                run.seen = now
        names = [name for name, run in self._runs.items() if idle and now - run.seen > idle]
        return await self._finish(names)

    async def stop(self) -> list[EndedRun]:
        """End every replay, and listen no more."""
        for server in self._servers:
            server.close()
        for opening in self._opening.values():
            opening.cancel()
        return await self._finish([*self._runs])

    def status(self) -> list[RunStatus]:
        """The replays that have not ended."""
        return [self._status(name, run) for name, run in self._runs.items()]

    async def _finish(self, names: list[str]) -> list[EndedRun]:
        return [ended for name in names if (ended := await self.finish(name)) is not None]

    def _status(self, name: str, run: _Run) -> RunStatus:
        server = run.session.server
        wrong = len(server.replayer.violations)
        asked = server.replayer.served + server.replayer.live + wrong
        return RunStatus(name, str(run.settings.tape), asked, len(server.connections), wrong, self.door.port_of(name))

    async def _listen(self, port: int) -> int:
        host, loop = self._settings.host, asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: Reception(self._admit, self._refused), host, port, backlog=BACKLOG
            )
        except OSError as error:
            raise PortInUseError(host, port, (error.strerror or str(error)).lower()) from None
        self._servers.append(server)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    async def _admit(self, port: int, headers: Headers) -> tuple[TapeServer, Callable[[Headers], Headers | bytes]]:
        name = self._choose(self.door.claim(port, headers)[0])
        try:
            run = await self._open(name, shim=False)
        except RefusedError:
            raise
        except TapeproxyError as error:
            raise RefusedError(error.what, where=error.where, fix=error.fix, status=503) from None
        return run.session.server, functools.partial(self._check, port, name)

    def _check(self, port: int, name: str, headers: Headers) -> Headers | bytes:
        """The headers of a later request on a connection of the run `name`, or what it is answered with instead."""
        try:
            given, rest = self.door.claim(port, headers)
            if (given or name) != name:
                raise RefusedError(f"this connection belongs to the run {name}", fix="open one for each run")
        except RefusedError as error:
            self._refused(error)
            return error.to_answer()
        return rest

    def _choose(self, name: str) -> str:
        """The tape that is meant. Raises RefusedError, which lists what there is."""
        names = self.names()
        if name in names:
            return name
        if not name and len(names) == 1:
            return next(iter(names))
        listed = ", ".join([*list(names)[:_LISTED], *(["..."] if len(names) > _LISTED else [])]) or "none"
        what = f"there is no tape {name[:64]!a} here" if name else "the proxy's credentials name no tape"
        raise RefusedError(what, fix=f"give the proxy as http://NAME:x@HOST:PORT with one of these names: {listed}")

    async def _open(self, name: str, *, shim: bool) -> _Run:
        """The replay of a tape, which is opened once however many ask for it at the same time."""
        if name in self._runs:
            return self._runs[name]
        opening = self._opening.get(name)
        if opening is None:
            opening = self._opening[name] = asyncio.get_running_loop().create_task(self._begin(name, shim=shim))
            opening.add_done_callback(lambda _: self._opening.pop(name))
        return await asyncio.shield(opening)

    async def _begin(self, name: str, *, shim: bool) -> _Run:
        settings = ReplaySettings(
            tape=self.names()[name],
            environment=self._settings.environment,
            speed=self._settings.speed,
            rules=self._settings.rules,
            shim=shim,
            proxy=self.door.url(name, self.port),
        )
        # In a thread: the other runs are served while a big tape is read.
        wire = await asyncio.to_thread(Wire.open, settings)
        session = await wire.begin(functools.partial(self._noticed, name))
        run = _Run(session, settings, time.monotonic_ns(), time.monotonic())
        self._runs[name] = run
        return run
