"""The lanes of the terminal viewer as bars of characters over an axis. Pure: knows rows and columns, no widget."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal

from tapeproxy.cli.rendering import cells, clip, duration
from tapeproxy.cli.tuirows import Rows

WAITING: Final = "░"
ANSWERING: Final = "█"
_PAD: Final = 0.02
_LEAST: Final = 1e-3
"""Units of the axis that are shown at least: a nanosecond of a time."""

type Kind = Literal["", "recorded", "inside", "reused", "mutated", "live", "failed"]
"""What a bar is, by which it has its colour; `""`: there is none."""
_OVER: Final[Sequence[Kind]] = ("", "recorded", "inside", "reused", "live", "mutated", "failed")
"""Of two bars in one column the later of these is seen."""


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the axis that is shown, in microseconds or ranks."""

    start: float
    stop: float

    def zoomed(self, factor: float, middle: float) -> "Window":
        """The same with `factor` times as much in it; `middle` stays where it is, or comes into it."""
        if not self.start <= middle <= self.stop:
            middle = (self.start + self.stop) / 2
        factor = max(factor, _LEAST / (self.stop - self.start))
        return Window(middle - (middle - self.start) * factor, middle + (self.stop - middle) * factor)

    def moved(self, part: float) -> "Window":
        """Moved by a part of its width."""
        by = (self.stop - self.start) * part
        return Window(self.start + by, self.stop + by)


@dataclass(frozen=True, slots=True)
class _Lane:
    numbers: Sequence[int]
    begins: Sequence[float]
    until: Sequence[float]
    """The latest end of all before and at each."""


class Chart:
    """Where the exchanges of all lanes stand. `ranks`: by causal rank (of each number); else by time."""

    def __init__(self, rows: Rows, ranks: Mapping[int, int] | None) -> None:
        self._rows = rows
        self._ranks = ranks
        ends = [value for name in ("end", "first", "at") for value in rows.columns[name] if value is not None]
        self._last = max([*ends, int(rows.about["duration"])], default=0)
        # A tape that was imported without times has no axis of them.
        self.timeless = ranks is None and bool(rows.count) and not any(ends)
        by_lane: dict[str, list[int]] = {lane["id"]: [] for lane in rows.lanes}
        for number in range(1, rows.count + 1):
            by_lane[rows.lane(number)].append(number)
        self._span: Window | None = None
        self._drawn: dict[str, Sequence[tuple[str, Kind]]] = {}
        self._drawn_for: tuple[Window, int, Mapping[int, Kind]] | None = None
        self._lanes = {lane: self._lane(numbers) for lane, numbers in by_lane.items() if numbers}

    @property
    def lanes(self) -> Sequence[str]:
        """Those that asked something, from top to bottom."""
        return [*self._lanes]

    def span(self) -> Window:
        """All of it, from where something happened."""
        if self._span is not None:
            return self._span
        numbers = range(1, self._rows.count + 1)
        start = min(map(self.begin, numbers), default=0.0)
        stop = max(max(map(self.stop, numbers), default=0.0), start + 1)
        pad = (stop - start) * _PAD
        self._span = Window(start - pad, stop + pad)
        return self._span

    def begin(self, number: int) -> float:
        """Where an exchange begins."""
        if self._ranks is not None:
            return self._ranks[number] - 0.4
        return number - 0.4 if self.timeless else float(self._rows.columns["at"][number - 1])

    def stop(self, number: int) -> float:
        """Where it ends; one that still runs, at the end of what is known."""
        if self._ranks is not None:
            return self._ranks[number] + 0.4
        if self.timeless:
            return number + 0.4
        end = self._rows.columns["end"][number - 1]
        return max(float(self._last if end is None else end), self.begin(number))

    def bars(self, lane: str, window: Window, width: int, planned: Mapping[int, Kind]) -> Sequence[tuple[str, Kind]]:
        """A character and its kind for each column of a lane. `planned`: what a fork would do with an exchange."""
        if (window, width, planned) != self._drawn_for:
            self._drawn_for = window, width, planned
            self._drawn = {}
        if lane not in self._drawn:
            self._drawn[lane] = self._draw(lane, window, width, planned)
        return self._drawn[lane]

    def _draw(self, lane: str, window: Window, width: int, planned: Mapping[int, Kind]) -> list[tuple[str, Kind]]:
        out: list[tuple[str, Kind]] = [(" ", "")] * width
        scale = width / (window.stop - window.start)
        for number in self._seen(lane, window):
            kind = planned.get(number) or self._kind(number)
            first = max(0, int((self.begin(number) - window.start) * scale))
            last = min(width - 1, max(first, int((self.stop(number) - window.start) * scale)))
            heard = self._heard(number)
            for at in range(first, last + 1):
                if _OVER.index(kind) >= _OVER.index(out[at][1]):
                    waits = heard is None or (at + 1) / scale + window.start <= heard
                    out[at] = (WAITING if waits and last > first else ANSWERING, kind)
        return out

    def column(self, number: int, window: Window, width: int) -> tuple[int, int] | None:
        """The first and last column of an exchange, if it can be seen."""
        scale = width / (window.stop - window.start)
        first, last = (int((at - window.start) * scale) for at in (self.begin(number), self.stop(number)))
        return None if last < 0 or first >= width else (max(0, first), min(last, width - 1))

    def axis(self, window: Window, width: int) -> str:
        """The line below the lanes: where one is."""
        count = max(2, width // 16)
        line = ""
        for place in range(count):
            at = width * place // count
            value = window.start + (window.stop - window.start) * at / width
            line = clip(line, at) if cells(line) > at else line + " " * (at - cells(line))
            line += f"╵{self._told(value)}"
        return clip(line, width)

    def _told(self, value: float) -> str:
        if self._ranks is not None or self.timeless:
            return f"{'rank ' if self._ranks is not None else ''}{value:.0f}" if value >= 0 else ""
        return duration(int(value * 1000)) if value >= 0 else ""

    def _lane(self, numbers: list[int]) -> _Lane:
        numbers.sort(key=self.begin)
        return _Lane(numbers, [self.begin(one) for one in numbers], [*accumulate(map(self.stop, numbers), max)])

    def _seen(self, lane: str, window: Window) -> Sequence[int]:
        found = self._lanes[lane]
        return found.numbers[bisect_left(found.until, window.start) : bisect_right(found.begins, window.stop)]

    def _heard(self, number: int) -> float | None:
        if self._ranks is not None or self.timeless:
            return self.begin(number)
        first: int | None = self._rows.columns["first"][number - 1]
        return None if first is None else float(first)

    def _kind(self, number: int) -> Kind:
        if self._rows.failed(number):
            return "failed"
        source = self._rows.columns["source"][number - 1]
        for kind in ("reused", "mutated", "live"):
            if source == kind:
                return kind
        return "inside" if self._rows.columns["inside"][number - 1] else "recorded"
