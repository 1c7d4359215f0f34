"""Which parts of a long text stand in others, too: the longest first. Knows texts, not what they are.

Every part of `LEAST` characters or more is found: of each text every second place is looked up among all places of the
long one, eleven characters at a time, and what fits is followed in both directions. Fewer characters at fewer places
would fit many words that both texts have by chance. Of eleven characters that come again and again in the long text,
only the first places are looked at.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

LEAST: Final = 12
"""Characters of a part."""
_STEP: Final = 2
_GRAM: Final = LEAST - _STEP + 1
_PLACES: Final = 32
"""Places of the same eleven characters that are looked at."""
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
        self._left = _EXTENSIONS
        self.whole = True
        """Whether all was found: text that repeats itself over and over is given up at some point."""
        grams = [long[at : at + _GRAM] for at in range(len(long) - _GRAM + 1)]
        # Most stand at one place: no list for those.
        self._first = dict(zip(reversed(grams), range(len(grams) - 1, -1, -1), strict=True))
        self._more: dict[str, list[int]] = {}
        repeated = set[int]()
        for at, gram in enumerate(grams):
            if self._first[gram] != at:
                repeated |= {self._first[gram], at}
                places = self._more.setdefault(gram, [])
                if len(places) < _PLACES:
                    places.append(at)
        self._repeated = sorted(repeated)

    def find(self, texts: Iterable[str]) -> Iterator[Common]:
        """The parts that each text has in common with the long one, none of which can be made longer."""
        for number, text in enumerate(texts):
            yield from self._find(text, number)

    def _find(self, text: str, number: int) -> Iterator[Common]:
        first, more, done, skip = self._first, self._more, dict[int, int](), 0
        for there in [at for at in range(0, len(text) - _GRAM + 1, _STEP) if text[at : at + _GRAM] in first]:
            if there < skip:
                continue
            gram = text[there : there + _GRAM]
            at = first[gram]
            for place in (at, *more.get(gram, ())):
                if done.get(place - there, 0) > there:
                    continue
                if not self._left:
                    self.whole = False
                    return
                self._left -= 1
                found = self._grown(text, place, there, number)
                done[place - there] = found.there + found.length
                if found.length >= LEAST:
                    yield found
            if gram not in more:
                # Until the end of this part, or what stands elsewhere too, nothing else can begin.
                fresh = self._until_repeated(at)
                skip = min(done[at - there] - _GRAM + 1, there + fresh) // _STEP * _STEP

    def _until_repeated(self, at: int) -> int:
        """How many characters further on the next gram stands that is in the long text more than once."""
        place = bisect_left(self._repeated, at)
        return (self._repeated[place] if place < len(self._repeated) else len(self._long)) - at

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
    left = sorted(free)
    out: list[Common] = []
    for one in found:
        stop = one.at + one.length
        at = max(0, bisect_right(left, one.at, key=lambda part: part[0]) - 1)
        while at < len(left) and left[at][0] < stop:
            start, end = left[at]
            low, high = max(start, one.at), min(end, stop)
            if high - low < min(LEAST, one.length):
                at += 1
                continue
            out.append(Common(low, one.there + low - one.at, high - low, one.text))
            rest = [part for part in ((start, low), (high, end)) if part[0] < part[1]]
            left[at : at + 1] = rest
            at += len(rest)
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
