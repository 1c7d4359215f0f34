"""Many recordings behind one wire: a run begins with the first client that names it, and ends when it is told to.

Knows names and the order of things; a tape and its seal are `proxy.recording`'s, who is let in is `Door`'s.
"""

import asyncio
import dataclasses
import functools
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, check_keys, child_environment, upstream_of
from tapeproxy.proxy.followed import FollowedTape
from tapeproxy.proxy.manyruns import SUFFIX, Door, EndedRun, ManySettings, RunStatus
from tapeproxy.proxy.newtapes import open_tape
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.recorded import Recorded, RecordSettings
from tapeproxy.proxy.recording import Recording, wire_options
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.sharedwire import RunWire, SharedWire
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.tapes.credentials import RefusedError, check_name
from tapeproxy.tapes.errors import TapeExistsError, TapeproxyError
from tapeproxy.tapes.records import Headers, Record, Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.secretvars import secret_values

if TYPE_CHECKING:
    from tapeproxy.addons.switchboard import RunTaping


@dataclass(slots=True)
class _Run:
    recording: Recording
    wire: RunWire
    tape: "_CountedTape"
    processes: RunProcesses
    seen: float
    """When a client was last there, by time.monotonic."""


class _CountedTape(FollowedTape):
    """Counts the requests on it."""

    asked = 0

    def add(self, record: Record) -> int:
        self.asked += isinstance(record, Request)
        return super().add(record)


class ManyRecordings:
    """Runs that are recorded at the same time, each on a tape of its own in one folder.

    `refused` is told of every client that is turned away, `lost` at once when the tape of a run (its name comes first)
    stops being whole, and why. Raises UsageError where the environment holds the placeholder of a key.
    """

    def __init__(
        self,
        settings: ManySettings,
        refused: Callable[[RefusedError], None],
        lost: Callable[[str, str], None] = lambda _name, _why: None,
    ) -> None:
        check_keys(settings.environment)
        self.door = Door(settings.host, settings.token)
        self.turned_away = refused
        self._lost = lost
        self._settings = settings
        self._ca = CertificateAuthority.open()
        self._bundle = self._ca.bundle(upstream_of(settings.environment).ca_file)
        self._key = load_key()
        self._wire = SharedWire(wire_options(self._record_settings(settings.folder), self._ca), self)
        self._runs: dict[str, _Run] = {}
        self._ending: set[asyncio.Task[Recorded]] = set()

    @property
    def port(self) -> int:
        return self._wire.port

    async def start(self) -> None:
        """Listen. Raises PortInUseError, WireError, UsageError."""
        await self._wire.start()

    def claim(self, port: int, headers: Headers) -> tuple[str, Headers]:
        """See Door."""
        return self.door.claim(port, headers)

    def taping_of(self, name: str) -> "RunTaping":
        """What tapes the run of this name. Raises RefusedError, also where the tape cannot be made."""
        try:
            return self._open(name, shim=False).wire.taping
        except RefusedError:
            raise
        except TapeproxyError as error:
            raise RefusedError(error.what, where=error.where, fix=error.fix, status=503) from None

    async def variables(self, name: str) -> dict[str, str]:
        """The environment for programs of the run `name`, which begins now if it has not.

        Raises RefusedError, TapeWriteError and PortInUseError.
        """
        check_name(name)
        if self._settings.ports and not self.door.port_of(name):
            self.door.give(await self._wire.open_door(self._settings.host), name)
        return self.door.led_here(self._open(name, shim=True).recording.environment, name, self.port)

    async def finish(self, name: str) -> EndedRun | None:
        """End a run and seal its tape; None: there is none. Its name is free for another run at once."""
        run = self._runs.pop(name, None)
        if run is None:
            return None
        # A task of its own: whoever asked for it may leave, and the tape is sealed all the same.
        ending = asyncio.create_task(self._end(run))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return EndedRun(name=name, recorded=await asyncio.shield(ending))

    async def _end(self, run: _Run) -> Recorded:
        try:
            return await run.recording.finish(None)
        finally:
            await run.wire.stop()

    async def finish_idle(self) -> list[EndedRun]:
        """End the runs that had no client for too long, and no process that has its variables."""
        now, idle = time.monotonic(), self._settings.idle
        for run in self._runs.values():
            if run.wire.taping.clients or (now - run.seen > idle and run.processes.pids()):
                run.seen = now
        names = [name for name, run in self._runs.items() if idle and now - run.seen > idle]
        return await self._finish(names)

    async def stop(self) -> list[EndedRun]:
        """End every run, then the wire."""
        try:
            return await self._finish([*self._runs])
        finally:
            await asyncio.gather(*self._ending, return_exceptions=True)
            await self._wire.drain()
            await self._wire.stop()

    async def _finish(self, names: list[str]) -> list[EndedRun]:
        # All of them to their end, then the first error: a tape that can't be sealed must not keep another from it.
        results = await asyncio.gather(*map(self.finish, names), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error
        return [ended for ended in results if isinstance(ended, EndedRun)]

    def status(self) -> list[RunStatus]:
        """The runs that have not ended."""
        return [
            RunStatus(
                name,
                str(run.recording.tape.path),
                run.tape.asked,
                len(run.wire.taping.clients),
                port=self.door.port_of(name),
            )
            for name, run in self._runs.items()
        ]

    def _open(self, name: str, *, shim: bool) -> _Run:
        run = self._runs.get(check_name(name))
        if run is None:
            run = self._runs[name] = self._begin(name, shim=shim)
        return run

    def _begin(self, name: str, *, shim: bool) -> _Run:
        environment = self._settings.environment
        token = [self.door.token] if self.door.token else []
        redactor = Redactor(self._key, [*secret_values(environment), *token], self._settings.redaction)
        processes = RunProcesses(secrets.token_hex(8))
        lost = functools.partial(self._lost, name)
        tape = _CountedTape(redactor, Strangers(processes), lost)
        wire = self._wire.run(name, tape, redactor, processes.owns_port, tape.untagged)
        wire.taping.failures.at_first = lambda error: lost(f"something could not be taped: {error}")
        try:
            given = self._open_tape(name, tape, redactor, shim=shim)
        except BaseException:
            self._wire.forget(wire)
            raise
        url = self.door.url(name, self.port)
        child = ChildSettings(url, self._bundle, self._ca.certificate, processes.run_id)
        recording = Recording(
            tape, wire, child_environment(environment, child) | given, self._record_settings(tape.writer.path)
        )
        return _Run(recording, wire, tape, processes, time.monotonic())

    def _open_tape(self, name: str, tape: FollowedTape, redactor: Redactor, *, shim: bool) -> dict[str, str]:
        address = f"{self.door.reached}:{self.door.port_of(name) or self.port}"
        for path in self._paths(name):
            settings = dataclasses.replace(self._record_settings(path), shim=shim)
            try:
                return open_tape(settings, tape, address, self._key, redactor)
            except TapeExistsError:
                continue  # made since we looked
        raise AssertionError("there is always another number")

    def _paths(self, name: str) -> Iterator[Path]:
        number = 1
        while True:
            path = self._settings.folder / f"{name}{'' if number == 1 else f'-{number}'}{SUFFIX}"
            if not path.exists():
                yield path
            number += 1

    def _record_settings(self, path: Path) -> RecordSettings:
        given = self._settings
        return RecordSettings(
            tape=path,
            argv=(),
            environment=given.environment,
            cwd=given.cwd,
            host=given.host,
            port=given.port,
            hosts=given.hosts,
            rules=given.rules,
            redaction=given.redaction,
        )
