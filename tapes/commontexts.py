"""Which parts of a long text stand in others, too: the longest first. Knows texts, not what they are.

Every part of `LEAST` characters or more is found: of each text every fourth place is looked up among all places of the
long one, nine characters at a time, and what fits is followed in both directions. Of nine characters that come again
and again in the long text, only the first places are looked at.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

LEAST: Final = 12
"""Characters of a part."""
_STEP: Final = 4
_GRAM: Final = LEAST - _STEP + 1
_PLACES: Final = 32
"""Places of the same nine characters that are looked at."""
_EXTENSIONS: Final = 200_000


class Common(NamedTuple):
    """`length` characters at `at` of the long text stand at `there` of the text number `text`."""

    at: int
    there: int
    length: int
    text: int


class CommonTexts:
    """The places of a long text, to look others up in."""

    def __init__(self, long: str) -> None:
        self._long = long
        self._places: dict[str, list[int]] = {}
        self._left = _EXTENSIONS
        self.whole = True
        """Whether all was found: text that repeats itself over and over is given up at some point."""
        for at in range(len(long) - _GRAM + 1):
            places = self._places.setdefault(long[at : at + _GRAM], [])
            if len(places) < _PLACES:
                places.append(at)

    def find(self, texts: Iterable[str]) -> Iterator[Common]:
        """The parts that each text has in common with the long one, none of which can be made longer."""
        for number, text in enumerate(texts):
            yield from self._find(text, number)

    def _find(self, text: str, number: int) -> Iterator[Common]:
        places, done = self._places, dict[int, int]()
        for there in range(0, len(text) - _GRAM + 1, _STEP):
            for at in places.get(text[there : there + _GRAM], ()):
                if done.get(at - there, 0) > there:
                    continue
                if not self._left:
                    self.whole = False
                    return
                self._left -= 1
                found = self._grown(text, at, there, number)
                done[at - there] = found.there + found.length
                if found.length >= LEAST:
                    yield found

    def _grown(self, text: str, at: int, there: int, number: int) -> Common:
        long, back = self._long, 0
        while back < min(at, there) and long[at - back - 1] == text[there - back - 1]:
            back += 1
        ahead = _shared(long, at, text, there)
        return Common(at - back, there - back, back + ahead, number)


def chosen(found: Sequence[Common], free: Sequence[tuple[int, int]]) -> list[Common]:
    """Parts that do not overlap, in order: the first ones of `found` come first, the others get what they leave.

    `free`: the intervals that there are to share; no part reaches over the end of one.
    """
    left = list(free)
    out: list[Common] = []
    for one in found:
        for start, end in [part for part in left if part[0] < one.at + one.length and one.at < part[1]]:
            low, high = max(start, one.at), min(end, one.at + one.length)
            if high - low < min(LEAST, one.length):
                continue
            out.append(Common(low, one.there + low - one.at, high - low, one.text))
            left.remove((start, end))
            left += [part for part in ((start, low), (high, end)) if part[0] < part[1]]
    return sorted(out)


def _shared(a: str, at: int, b: str, there: int) -> int:
    """How many characters two texts have in common from two places on."""
    start, step = at, 64
    while step:
        if a[at : at + step] == b[there : there + step] and at + step <= len(a) and there + step <= len(b):
            at, there = at + step, there + step
            step *= 2
        else:
            step //= 2
    return at - start
