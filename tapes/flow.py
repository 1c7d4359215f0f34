"""Which reads flowed into what a replay asked differently: the reads of a traced replay, searched by value.

Depends on the two texts of a difference alone. Every way of writing what was read is looked for in the text that was
asked, where that differs from the tape.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tapeproxy.tapes.provenance import How, SiteCount, Source, place_text
from tapeproxy.tapes.readings import SECOND, Read, Site, agrees, plain_texts, time_texts
from tapeproxy.tapes.windows import Window, locate, occurrences, window_of

MOST_SOURCES = 4
"""Of one difference."""
_MOST_SITES = 8
_TELLING = 4  # characters; shorter values are found anywhere
_EPOCHS = {10: SECOND, 13: 1_000_000, 16: 1_000, 19: 1}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FRACTION = re.compile(r"[.,](\d{1,9})(?!\d)")


class _Found(NamedTuple):
    start: int
    end: int
    how: How
    read: int


class Trace:
    """The reads of a traced replay up to a request, in their order."""

    def __init__(self, reads: Iterable[Read]) -> None:
        self.reads = [*_with_joined(reads)]
        self._seconds: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._texts: dict[str, list[int]] = defaultdict(list)
        for index, read in enumerate(self.reads):
            if read.ns is not None:
                for offset in {0, read.offset}:
                    self._seconds[read.ns // SECOND, offset].append(index)
            for text in plain_texts(read):
                if text:
                    self._texts[text].append(index)

    def sources(self, taped: str | None, asked: str | None, lane: str | None = None) -> tuple[Source, ...]:
        """The reads that are in `asked` where it differs from `taped`; `lane` is the request's. The surest come first.

        Of several reads with a fitting value, the one of the longest text counts, then the last of the request's lane.
        """
        if not asked:
            return ()
        window = window_of(taped or "", asked)
        found = [*self._find_times(window), *self._find_texts(window)]
        found.sort(key=lambda one: self._rank(one, window, lane), reverse=True)
        chosen: list[_Found] = []
        for one in found:
            if len(chosen) < MOST_SOURCES and all(one.end <= has.start or has.end <= one.start for has in chosen):
                chosen.append(one)
        return tuple(self._source(one, window) for one in chosen)

    def sites(self, lane: str, n: int) -> tuple[SiteCount, ...]:
        """The places that read the clock of `lane` between its requests `n - 1` and `n`, the busiest first."""
        counts: dict[Site, int] = defaultdict(int)
        for read in self.reads:
            if read.lane == lane and read.n == n and read.clock:
                counts[read.site] += read.clock
        ordered = sorted(counts.items(), key=lambda item: -item[1])
        return tuple(SiteCount(site, reads) for site, reads in ordered[:_MOST_SITES])

    def gaps(self) -> tuple[str, ...]:
        """What was not looked at: places that read so often that only some of their values were told."""
        busy = {read.site for read in self.reads if read.count > 1 and read.kind != "none" and not read.joined}
        return tuple(f"not all values are known of {site.what}() {place_text(site)}" for site in busy)[:_MOST_SITES]

    def _source(self, found: _Found, window: Window) -> Source:
        read = self.reads[found.read]
        return Source(found.how, window.text[found.start : found.end], read.site, read.lane, read.clamped)

    def _rank(self, found: _Found, window: Window, lane: str | None) -> tuple[Any, ...]:
        read = self.reads[found.read]
        is_number = window.text[found.start : found.end].replace(".", "").isdigit()
        fitting = is_number == read.site.what.startswith("time.time")
        sure = found.how not in ("maybe", "minute", "day")
        return sure, found.end - found.start, fitting, _closeness(read.lane, lane), not read.site.via, found.read

    def _find_texts(self, window: Window) -> Iterator[_Found]:
        for text, indices in self._texts.items():
            kinds = {self.reads[index].kind for index in indices}
            place = locate(text, window, whole=kinds <= {"int", "wall"})
            if place is not None:
                start, end = place
                how: How = "value" if end - start == len(text) else "part"
                if end - start < _TELLING and window.asked.strip() != text:
                    how = "maybe"
                yield from (_Found(start, end, how, index) for index in indices)

    def _find_times(self, window: Window) -> Iterator[_Found]:
        for (second, offset), indices in self._seconds.items():
            if offset == 0:
                yield from self._find_epochs(window, second, indices)
            for text, precision in time_texts(second, offset):
                for start in occurrences(text, window, ends=False):
                    end = start + len(text)
                    fraction = _FRACTION.match(window.text, end) if precision == "second" else None
                    for index in indices:
                        yield self._judge(index, start, end, precision, fraction)

    def _find_epochs(self, window: Window, second: int, indices: list[int]) -> Iterator[_Found]:
        for digits in (str(second), str(second + 1)):  # round() goes up
            for start in occurrences(digits, window, ends=False):
                number = _NUMBER.match(window.text, start)
                unit = _EPOCHS.get(len(number[0].partition(".")[0])) if number else None
                for index in indices if number and unit else ():
                    ns = self.reads[index].ns
                    if ns is not None and number and unit and agrees(ns, number[0], unit=unit):
                        yield _Found(start, number.end(), "value", index)
                    elif digits == str(second):
                        yield _Found(start, start + len(digits), "second", index)

    def _judge(self, index: int, start: int, end: int, precision: How, fraction: re.Match[str] | None) -> _Found:
        ns = self.reads[index].ns or 0
        if precision != "second":
            return _Found(start, end, precision, index)
        if fraction is None:
            return _Found(start, end, "value", index)
        if agrees(ns % SECOND, f"0.{fraction[1]}"):
            return _Found(start, fraction.end(), "value", index)
        return _Found(start, end, "second", index)


def _with_joined(reads: Iterable[Read]) -> Iterator[Read]:
    """The reads, and after each row of single characters from one place the word that they make."""
    row: list[Read] = []
    for read in reads:
        single = read.kind in ("str", "int") and len(read.values) == 1 and len(read.values[0]) == 1
        if row and not (single and (read.site, read.lane, read.n) == (row[0].site, row[0].lane, row[0].n)):
            yield from _join(row)
            row = []
        if single:
            row.append(read)
        yield read
    yield from _join(row)


def _join(row: Sequence[Read]) -> Iterator[Read]:
    if len(row) > 1:
        first = row[0]
        yield Read(first.site, first.lane, first.n, "str", ("".join(read.values[0] for read in row),), joined=True)


def _closeness(of: str, lane: str | None) -> int:
    """How near a lane is to the request's: the same, one that it descends from, one below it, another."""
    if lane is None or of == lane:
        return 3
    if lane.startswith(of + "/"):
        return 2
    return 1 if of.startswith(lane + "/") else 0
