"""What a row of the benchmark yields, as values: samples of ours and of a peer, one figure, and its bar."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

type Unit = Literal["/s", "ns", "µs", "ms", "s", "KB", "MB", "x"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing measured several times."""

    name: str
    unit: Unit
    values: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        low, high = min(self.values), max(self.values)
        return f"{amount(self.median)} {self.unit} ({amount(low)}-{amount(high)})"


@dataclass(frozen=True, slots=True)
class Bar:
    """The limit of a figure: at least so much, or at most. `later` is the one that a release is held to."""

    limit: float
    sense: Literal["at least", "at most"]
    later: float | None = None

    def met(self, figure: float) -> bool:
        return figure >= self.limit if self.sense == "at least" else figure <= self.limit


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table. `figure` is in `unit`; a ratio's unit is x. No `bar`: it is there to compare with.

    `spread`: the lowest and highest figure of a round, where each round has one.
    """

    what: str
    ours: Sample
    peer: Sample | None
    figure: float
    unit: Unit
    bar: Bar | None = None
    spread: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "met" if self.bar.met(self.figure) else "missed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that could not be measured here, and why. `ours_failed`: not for want of a peer."""

    what: str
    why: str
    ours_failed: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of a row: a `folder` for its files, and the `seconds` that it may take, roughly.

    `quick`: a smoke run, whose figures mean nothing. `full`: nothing is left out for its size. `say` tells of progress.
    """

    folder: Path
    quick: bool = False
    full: bool = False
    seconds: float = 45.0
    say: Callable[[str], None] = print

    def rounds(self, full: int) -> range:
        """How often to measure; ours and peers take turns in each round, so that noise hits all."""
        return range(1 if self.quick else full)


type Row = Callable[[Bench], Iterator[Line | Skipped]]


def ratio(what: str, ours: Sample, peer: Sample, bar: Bar | None = None) -> Line:
    """A line whose figure is ours over the peer's: the median over the rounds, each compared with itself."""
    ratios = [a / b for a, b in zip(ours.values, peer.values, strict=False)]
    return Line(what, ours, peer, statistics.median(ratios), "x", bar, (min(ratios), max(ratios)))


def amount(value: float) -> str:
    """A number with three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
