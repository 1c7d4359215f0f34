"""Takes turns: ours and its peers run one after the other in each round, so that a busy moment hits all of them.

A peer that can't be had or fails is out, with a word, and the others go on. A contest that would take too long has
fewer rounds.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.figures import Bar, Bench, Line, Sample, Skipped, Unit, amount, ratio
from bench.processes import FailedError, MissingError

OURS = "tapeproxy"

type Run = Callable[[], float]
"""Runs one competitor once and gives its figure. Raises MissingError or FailedError."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What came of it: the values of each competitor, and why the others have none."""

    unit: Unit
    values: Mapping[str, list[float]]
    out: Mapping[str, str] = field(default_factory=dict[str, str])

    def sample(self, name: str) -> Sample:
        return Sample(name, self.unit, self.values[name])

    def ratio(self, what: str, peer: str, bar: Bar | None = None, ours: str = OURS) -> Line | Skipped:
        """A line whose figure is ours over the peer's."""
        return self._missing(what, peer, ours) or ratio(what, self.sample(ours), self.sample(peer), bar)

    def beside(self, what: str, peer: str, bar: Bar | None = None, ours: str = OURS) -> Line | Skipped:
        """A line whose figure is ours, with the peer's to compare. Without the peer it is there all the same."""
        sample = None if peer in self.out else self.sample(peer)
        if missing := self._missing(what, ours, ours):
            return missing
        return Line(what, self.sample(ours), sample, self.sample(ours).median, self.unit, bar)

    def alone(self, what: str, bar: Bar | None = None) -> Line | Skipped:
        """A line of ours and nothing else."""
        if missing := self._missing(what, OURS, OURS):
            return missing
        return Line(what, self.sample(OURS), None, self.sample(OURS).median, self.unit, bar)

    def added(self, what: str, peer: str, bar: Bar | None = None) -> Line | Skipped:
        """A line whose figure is ours less the peer's."""
        if missing := self._missing(what, peer, OURS):
            return missing
        ours, other = self.sample(OURS), self.sample(peer)
        return Line(what, ours, other, ours.median - other.median, self.unit, bar)

    def _missing(self, what: str, peer: str, ours: str) -> Skipped | None:
        for name in (ours, peer):
            if name in self.out:
                return Skipped(what, self.out[name], ours_failed=name.startswith(OURS))
        return None


def warm(bench: Bench, unit: Unit, runs: Mapping[str, Run]) -> Mapping[str, str]:
    """Run all of them once for nothing; gives who is out. Not in a smoke run."""
    return {} if bench.quick else hold(bench, unit, runs, 1).out


def hold(
    bench: Bench, unit: Unit, runs: Mapping[str, Run], rounds: int, out: Mapping[str, str] | None = None
) -> Contest:
    """Run all of them `rounds` times at most, in turns, for about `bench.seconds` at most; each at least once.

    Who is `out` already stays out.
    """
    values: dict[str, list[float]] = {}
    out = dict(out or {})
    began, longest = time.monotonic(), 0.0
    for number in bench.rounds(rounds):
        start = time.monotonic()
        if values and start - began + longest > bench.seconds:
            break
        for name, run in runs.items():
            if name not in out:
                _take(name, run, values, out)
        longest = max(longest, time.monotonic() - start)
        said = ", ".join(f"{name} {amount(found[-1])}" for name, found in values.items() if name not in out)
        bench.say(f"round {number + 1}: {said} {unit}")
    for name in out:
        bench.say(f"{name}: {out[name]}")
    return Contest(unit, values, out)


def _take(name: str, run: Run, values: dict[str, list[float]], out: dict[str, str]) -> None:
    try:
        values.setdefault(name, []).append(run())
    except (MissingError, FailedError) as error:
        out[name] = str(error)
