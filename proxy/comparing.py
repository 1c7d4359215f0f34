"""Are replays of one tape the same, and if not, where do they first differ? Pure: compares what `Run`s hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from tapeproxy.proxy.outputs import Output
from tapeproxy.proxy.replayed import Replayed
from tapeproxy.tapes.course import Course
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.partings import parting
from tapeproxy.tapes.violations import Drift, Violation
from tapeproxy.tapes.wording import excerpts

type What = Literal["violation", "drift", "timeout", "request", "position", "answers", "stdout", "stderr", "exit"]
"""What of a replay was another, or wrong by itself; stable words, in the order in which they are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of several replays. `number` counts from 1; `trace` is the trace hash of the answers that were given.

    `took_ns`: the whole replay, its preparation included; `replayed.took_ns` is the agent's part of it.
    """

    number: int
    replayed: Replayed
    stdout: Output
    stderr: Output
    trace: str
    course: Course
    took_ns: int
    drift_counts: bool = True

    def fault(self) -> Violation | Drift | Literal["timeout"] | None:
        """What makes a replay no faithful one, whatever the others did; None for a clean one."""
        if self.replayed.violations:
            return self.replayed.violations[0]
        if self.replayed.drifts and self.drift_counts:
            return self.replayed.drifts[0]
        outcome = self.replayed.outcome
        return "timeout" if outcome is not None and outcome.stopped_by == "timeout" else None


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Why replay `number` is not identical to replay 1, or is wrong by itself. `text` is one sentence.

    `differences` are the places, `taped` being replay 1's and `asked` this one's; a `fault` has its own, against the
    tape. `also`: what else differs from replay 1.
    """

    number: int
    what: What
    text: str
    differences: tuple[Difference, ...] = ()
    also: tuple[What, ...] = ()
    fault: Violation | Drift | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "replay": self.number,
            "what": self.what,
            "text": self.text,
            "differences": [
                {"where": place.where, "first": place.taped, "this": place.asked} for place in self.differences
            ],
            "also": list(self.also),
            "fault": None if self.fault is None else self.fault.to_json(),
        }


def first_difference(runs: Sequence[Run]) -> Discrepancy | None:
    """The first thing wrong with the first replay that is not clean and identical to the first one; None: all are."""
    return next((found for run in runs if (found := discrepancy(runs[0], run)) is not None), None)


def identical(runs: Sequence[Run]) -> int:
    """How many replays are clean, and identical to the first one."""
    return sum(discrepancy(runs[0], run) is None for run in runs)


def discrepancy(first: Run, run: Run) -> Discrepancy | None:
    """Why `run` does not count as identical to `first`; None when it does."""
    fault = run.fault()
    differing = _differing(first, run)
    if fault == "timeout":
        return Discrepancy(run.number, "timeout", "it was stopped by --timeout", also=differing)
    if isinstance(fault, Violation):
        return Discrepancy(run.number, "violation", fault.what, also=differing, fault=fault)
    if isinstance(fault, Drift):
        return Discrepancy(run.number, "drift", fault.what, also=differing, fault=fault)
    if not differing:
        return None
    what, *also = differing
    text, differences = _explain(what, first, run)
    if "exit" in also:  # a crash explains much else
        differences += _explain("exit", first, run)[1]
    return Discrepancy(run.number, what, text, differences, tuple(also))


def _differing(first: Run, run: Run) -> tuple[What, ...]:
    return tuple(_differences(first, run))


def _differences(first: Run, run: Run) -> Iterator[What]:
    if first is run:
        return
    if (apart := parting(first.course, run.course)) is not None:
        yield apart.kind
    elif first.trace != run.trace:
        yield "answers"
    if not _same(first.stdout, run.stdout):
        yield "stdout"
    if not _same(first.stderr, run.stderr):
        yield "stderr"
    if _ended(first) != _ended(run):
        yield "exit"


def _explain(what: What, first: Run, run: Run) -> tuple[str, tuple[Difference, ...]]:
    match what:
        case "stdout":
            return _explain_output("stdout", first.stdout, run.stdout)
        case "stderr":
            return _explain_output("stderr", first.stderr, run.stderr)
        case "exit":
            return "the agent ended otherwise", (Difference("exit", _ended(first), _ended(run)),)
        case "answers":
            return "other answers were given", (Difference("trace hash", first.trace, run.trace),)
        case _:
            apart = parting(first.course, run.course)
            assert apart is not None
            return apart.what, apart.differences


def _explain_output(name: str, one: Output, other: Output) -> tuple[str, tuple[Difference, ...]]:
    place = _line(one, other)
    if place is None:
        kept = min(len(output.text) for output in (one, other) if not output.whole)
        one_sum, other_sum = (f"{output.size} bytes, blake3 {output.digest[:16]}" for output in (one, other))
        return f"{name} differs after its first {kept} bytes, and no more of it is kept", (
            Difference(name, one_sum, other_sum),
        )
    number, was, now = place
    return f"{name} differs at line {number}", (Difference(f"{name}, line {number}", *excerpts(was, now)),)


def _line(one: Output, other: Output) -> tuple[int, str | None, str | None] | None:
    """The number of the first line that differs, and what is there in each; None when what is kept is the same."""
    kept = min(len(output.text) for output in (one, other) if not output.whole) if _cut(one, other) else None
    pairs = zip_longest(one.text[:kept].splitlines(keepends=True), other.text[:kept].splitlines(keepends=True))
    for number, (was, now) in enumerate(pairs, 1):
        if was != now:
            return number, *_texts(was, now)
    return None


def _cut(one: Output, other: Output) -> bool:
    return not (one.whole and other.whole)


def _texts(was: bytes | None, now: bytes | None) -> tuple[str | None, str | None]:
    """Both lines as text; their ends only where nothing else differs."""
    a, b = (None if line is None else line.decode(errors="backslashreplace") for line in (was, now))
    if a is not None and b is not None and a.rstrip("\r\n") == b.rstrip("\r\n"):
        return a, b
    return None if a is None else a.rstrip("\r\n"), None if b is None else b.rstrip("\r\n")


def _same(one: Output, other: Output) -> bool:
    return (one.size, one.digest) == (other.size, other.digest)


def _ended(run: Run) -> str:
    """How the agent ended, in words."""
    outcome = run.replayed.outcome
    if outcome is None:
        return "not run"
    return f"exit {outcome.code}" if outcome.signal is None else f"killed by {outcome.signal}"
