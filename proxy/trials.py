"""Trials of `minimize`: replays of a tape with some of its values, by position, on warm wires, several at a time.

Knows how a trial is made and whether it failed; `tapes/minimizing.py` says what is tried, `tapes/neutraltapes.py` what
a neutral value is. By position (`tapes/positional.py`): a request whose content depends on an answer that was made
neutral gets its answer all the same.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.checks import Check, Ran
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replaying import Wire, stopping_at
from tapeproxy.proxy.supervisor import Outcome, Stdio, StopSignal
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.minimized import Hint
from tapeproxy.tapes.minimizing import minimize
from tapeproxy.tapes.neutraltapes import Key, NeutralTape
from tapeproxy.tapes.tracebacks import death
from tapeproxy.tapes.violations import Drift, Violation

_TAIL = 1 << 16
"""Bytes of standard error that are looked at for a traceback."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe is over: its `number` from 1, how many values it had `kept`, and whether the failure was there."""

    number: int
    kept: int
    failed: bool
    took_ns: int


def serves_reads(tape: Tape) -> bool:
    """Whether a replay can serve from a tape what the agent read from files."""
    return tape.head.io and tape.head.seed is not None


class EnoughError(Exception):
    """As many probes were made as were allowed."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A replay that is over: the `tape` that was served, what it asked and told, how it ended, its outputs in `folder`.

    `strayed`: the first thing it asked for that is not on the tape; it was stopped there.
    """

    kept: frozenset[Key]
    tape: Tape
    steps: Sequence[Step]
    outcome: Outcome
    strayed: Violation | None
    folder: Path
    hints: Sequence[Hint] = ()

    @property
    def stdout(self) -> Path:
        return self.folder / "stdout"

    @property
    def stderr(self) -> Path:
        return self.folder / "stderr"

    def failure(self) -> str:
        """How it ended, as far as two runs that fail in the same way have to agree; empty where it did not fail."""
        if self.strayed is not None:
            return ""
        if self.outcome.stopped_by is not None:
            return f"stopped by {self.outcome.stopped_by}"
        if self.outcome.exit_code == 0:
            return ""
        signal = self.outcome.signal
        ended = f"exit code {self.outcome.exit_code}" if signal is None else f"signal {signal}"
        with self.stderr.open("rb") as file:
            file.seek(max(self.stderr.stat().st_size - _TAIL, 0))
            died = death(file.read())
        return ended if died is None else f"{ended}, {died}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """How trials are made. `write` writes the tape of a trial to a path, for checks that look at it.

    `check` None: the failure is how the agent ends with all values. `most` probes are made (None: any number), `jobs`
    at the same time.
    """

    replay: ReplaySettings
    folder: Path
    write: Callable[[Trial, Path], None]
    check: Check | None = None
    jobs: int = 1
    most: int | None = None


class Trials:
    """Makes trials, and remembers the smallest that failed as `best`. `told` hears of each."""

    def __init__(
        self, settings: TrialSettings, tape: Tape, ending: Ending, values: NeutralTape, told: Callable[[Probed], None]
    ) -> None:
        self.made = 0
        self.best: Trial | None = None
        self.sought = "the check fails"
        self._settings = settings
        self._values = values
        self._told = told
        self._known: dict[frozenset[Key], bool] = {}
        self._names = itertools.count(1)
        replay = dataclasses.replace(
            settings.replay,
            match="position-not-content",
            max_violations=1,
            io="tape" if serves_reads(tape) else settings.replay.io,
        )
        self._wires = [Wire(replay, dataclasses.replace(tape), ending) for _ in range(settings.jobs)]
        self._free: asyncio.Queue[Wire] = asyncio.Queue()
        for wire in self._wires:
            self._free.put_nowait(wire)

    async def close(self) -> None:
        """Stop serving."""
        for wire in self._wires:
            await wire.stop()

    async def search(self) -> None:
        """Search until `best` is the smallest. Raises EnoughError, CheckError, UsageError, the supervisor's errors."""
        everything = frozenset(self._values.values)
        if not everything:
            raise UsageError("nothing on the tape has a value in it", where=str(self._settings.replay.tape))
        await self._begin(everything)
        if await self._try(frozenset()):
            return
        search = minimize(self._values.tree())
        try:
            batch = next(search)
            while True:
                batch = search.send(await self._first(batch))
        except StopIteration:
            return

    async def _begin(self, everything: frozenset[Key]) -> None:
        """Make the trial that has to fail: with all values, by position."""
        where = str(self._settings.replay.tape)
        trial, failed = await self._made(everything)
        if trial.strayed is not None:
            text = f"the agent asks for what is not on the tape: {trial.strayed.request}"
            fix = "see what `tapeproxy replay` says of it; only a tape that replays can be minimized"
            raise UsageError(text, where=where, fix=fix)
        if not failed:
            fix = "the check has to fail for the run that is on the tape" if self._settings.check else ""
            fix = fix or "the agent exits with 0: say with --check or --predicate what the failure is"
            raise UsageError("the run on the tape does not fail, so there is nothing to minimize", where=where, fix=fix)

    async def _first(self, batch: Sequence[frozenset[Key]]) -> int | None:
        """The first of these sets that fails; those behind it may be tried meanwhile."""
        tasks: list[asyncio.Task[bool]] = []
        try:
            for at in range(len(batch)):
                while len(tasks) < min(at + self._settings.jobs, len(batch)):
                    tasks.append(asyncio.create_task(self._try(batch[len(tasks)])))
                if await tasks[at]:
                    return at
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return None

    async def _try(self, kept: frozenset[Key]) -> bool:
        """Whether these values fail."""
        if kept not in self._known:
            if self._settings.most is not None and self.made >= self._settings.most:
                raise EnoughError
            self._known[kept] = (await self._made(kept))[1]
        return self._known[kept]

    async def _made(self, kept: frozenset[Key]) -> tuple[Trial, bool]:
        """Make a trial, judge it, and keep what it left if it is the best."""
        begun = time.monotonic_ns()
        wire = await self._free.get()
        try:
            trial = await self._run(kept, wire)
        finally:
            self._free.put_nowait(wire)
        failed = await self._fails(trial)
        self.made += 1
        self._told(Probed(self.made, len(kept), failed, time.monotonic_ns() - begun))
        gone: Trial | None = trial
        if failed and (self.best is None or len(kept) <= len(self.best.kept)):
            self.best, gone = trial, self.best
        if gone is not None:
            shutil.rmtree(gone.folder, ignore_errors=True)
        return trial, failed

    async def _fails(self, trial: Trial) -> bool:
        if trial.strayed is not None:
            return False  # it went another way, and how that ends says nothing
        if (check := self._settings.check) is not None:
            path = trial.folder / "trial.tape.jsonl.gz"
            ran = Ran(
                trial.outcome.exit_code,
                trial.stdout,
                trial.stderr,
                lambda: load(self._written(trial, path))[0],
                lambda: self._written(trial, path),
            )
            return await check(ran) == "bad"
        failure = trial.failure()
        if self.best is None:
            self.sought = failure
        return failure != "" and failure == self.sought

    def _written(self, trial: Trial, path: Path) -> Path:
        if not path.exists():
            self._settings.write(trial, path)
        return path

    async def _run(self, kept: frozenset[Key], wire: Wire) -> Trial:
        folder = self._settings.folder / str(next(self._names))
        folder.mkdir()
        wire.tape = dataclasses.replace(self._values.keeping(kept), head=wire.tape.head)
        stop, strayed, steps = StopSignal(), list[Violation](), list[Step]()

        def noticed(found: Violation | Drift) -> None:
            if isinstance(found, Violation):
                strayed.append(found)

        session, hints = await wire.begin(stopping_at(1, stop, noticed), steps.append), list[Hint]()
        if session.shims is not None and session.shims.hints is not None:
            session.shims.hints.heard = lambda value, place: hints.append((value, place))
        try:
            with outputs_in(folder) as stdio:
                outcome = await session.run(stop, stdio)
        finally:
            await session.end()
        return Trial(kept, wire.tape, steps, outcome, strayed[0] if strayed else None, folder, hints)


@contextlib.contextmanager
def outputs_in(folder: Path) -> Iterator[Stdio]:
    """Files `stdout` and `stderr` of a folder for an agent to write to; it has nothing to read."""
    with (
        Path(os.devnull).open("rb") as nothing,
        (folder / "stdout").open("wb") as out,
        (folder / "stderr").open("wb") as err,
    ):
        yield Stdio(nothing.fileno(), out.fileno(), err.fileno())
