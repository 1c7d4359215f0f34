"""Several replays of one tape on one warm wire: the tape is loaded, and its certificates are made, once.

Knows the order of things and what to keep; `comparing` says whether the replays were the same.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tapeproxy.proxy.comparing import Discrepancy, Run, discrepancy, first_difference, identical
from tapeproxy.proxy.outputs import Output, captured
from tapeproxy.proxy.replayed import Replayed, ReplaySettings
from tapeproxy.proxy.replaying import Wire, stopping_at
from tapeproxy.proxy.supervisor import StopSignal, held_signals
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.trace import Part, join_parts, part_of
from tapeproxy.tapes.violations import Drift, Violation

_MOST_TEXT = 64 << 20
"""Bytes of output that are kept over all runs; of later ones only sizes and digests are."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Replay `number` of `times` has begun."""

    number: int
    times: int


type Told = Callable[[Begun | Run], None]


@dataclass(frozen=True, slots=True)
class Repeated:
    """What came of it. `stopped`: somebody wanted it to end (Ctrl-C), so there are fewer runs than were asked for."""

    runs: list[Run]
    stopped: bool
    tape: Tape = field(repr=False)

    @property
    def identical(self) -> int:
        """How many are clean, and identical to the first."""
        return identical(self.runs)

    @property
    def difference(self) -> Discrepancy | None:
        """The first thing that keeps them from being all identical."""
        return first_difference(self.runs)

    def discrepancy(self, run: Run) -> Discrepancy | None:
        """Why this one of the runs does not count as identical; None when it does."""
        return discrepancy(self.runs[0], run)

    @property
    def as_sealed(self) -> bool | None:
        """Whether every replay gave out just the answers that the tape's seal was made of; None without seal or run."""
        seal = self.tape.seal
        return None if seal is None or not self.runs else all(run.trace == seal.trace for run in self.runs)

    @property
    def mean_ns(self) -> int:
        """Nanoseconds that a replay took, on average; 0 without one."""
        return sum(run.took_ns for run in self.runs) // max(len(self.runs), 1)


async def repeat(settings: ReplaySettings, times: int, told: Told = lambda _: None) -> Repeated:
    """Replay a tape `times` times, one after the other, with the agent's output taken and nothing for it to read.

    `told` hears of each replay that begins, and of each that is over. What a replay leaves behind, processes and files
    in its TMPDIR, is removed before the next. Raises what `Wire.open`, `Wire.begin` and `Replaying.run` raise.
    """
    with held_signals() as signals:
        wire = Wire.open(settings)
        repeating = _Repeating(wire)
        runs: list[Run] = []
        try:
            while len(runs) < times and not signals and not repeating.signalled:
                told(Begun(len(runs) + 1, times))
                run = await repeating.run(len(runs) + 1)
                if not repeating.signalled:
                    runs.append(run)
                    told(run)
        finally:
            await wire.stop()
    return Repeated(runs, len(runs) < times, wire.tape)


class _Repeating:
    """What the runs of one wire share: all that is the same in two of them is kept once."""

    def __init__(self, wire: Wire) -> None:
        self.signalled = False
        self._wire = wire
        self._first: Run | None = None
        self._parts: dict[int, Part] = {}
        self._room = _MOST_TEXT

    async def run(self, number: int) -> Run:
        """Make one replay."""
        settings, stop = self._wire.settings, StopSignal()
        course: list[Step] = []
        begun = time.monotonic_ns()
        session = await self._wire.begin(stopping_at(settings.max_violations, stop, _ignore), course.append)
        async with captured() as capture:
            try:
                outcome = await session.run(stop, capture.stdio)
            finally:
                capture.let_go()
                await session.end()
            outputs = await capture.finish()
        took_ns = time.monotonic_ns() - begun
        self.signalled = outcome.signalled
        replayed = session.verdict(settings, outcome, outcome.duration_ns)
        stdout, stderr = map(self._within_bounds, outputs)
        run = Run(
            number=number,
            replayed=replayed,
            stdout=stdout,
            stderr=stderr,
            trace=self._trace(replayed),
            course=tuple(step if settings.match == "lane" else _anybodys(step) for step in course),
            took_ns=took_ns,
            drift_counts=settings.on_drift == "fail",
        )
        return self._shared(run)

    def _trace(self, replayed: Replayed) -> str:
        exchanges = (*replayed.answered, *replayed.covered)
        for exchange in exchanges:
            if exchange.number not in self._parts:
                self._parts[exchange.number] = part_of(exchange, replayed.reading)
        return join_parts(self._parts[exchange.number] for exchange in exchanges)

    def _within_bounds(self, output: Output) -> Output:
        if self._first is not None and output in (self._first.stdout, self._first.stderr):
            return output
        self._room -= len(output.text)
        return output if self._room >= 0 else output.without_text()

    def _shared(self, run: Run) -> Run:
        if self._first is None:
            self._first = run
            return run
        first = self._first
        return replace(
            run,
            stdout=first.stdout if run.stdout == first.stdout else run.stdout,
            stderr=first.stderr if run.stderr == first.stderr else run.stderr,
            course=first.course if run.course == first.course else run.course,
        )


def _anybodys(step: Step) -> Step:
    return step._replace(tag=None, ask=step.ask._replace(lane=None))


def _ignore(found: Violation | Drift) -> None:
    """Every replay keeps its own list."""
