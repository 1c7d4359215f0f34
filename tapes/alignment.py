"""Which events of two lanes stand for each other: those of one identity, and between them the nearest. Pure.

The n-th event of a key stands for the other lane's n-th. Of these the most that are in the same order are anchors, and
the rest have moved. Between two anchors, what is left was changed, came, or went: see `gaps.py`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple


class Anchored(NamedTuple):
    """`pairs` of positions with the same key, the `moved` ones among them, and the `gaps`: what is left between."""

    pairs: list[tuple[int, int]]
    moved: set[tuple[int, int]]
    gaps: list[tuple[list[int], list[int]]]


def anchor(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> Anchored:
    """Align two sequences of keys. Takes n log n, whatever they are."""
    where = {key: at for at, key in enumerate(numbered(theirs))}
    pairs = [(at, where[key]) for at, key in enumerate(numbered(ours)) if key in where]
    kept = rising(pairs)
    taken = {a for a, _ in pairs}, {b for _, b in pairs}
    gaps = []
    before = (-1, -1)
    for a, b in (*kept, (len(ours), len(theirs))):
        left = [at for at in range(before[0] + 1, a) if at not in taken[0]]
        right = [at for at in range(before[1] + 1, b) if at not in taken[1]]
        if left or right:
            gaps.append((left, right))
        before = (a, b)
    return Anchored(pairs, set(pairs) - set(kept), gaps)


def numbered[T: Hashable](keys: Iterable[T]) -> Iterator[tuple[T, int]]:
    """Each key with how often it came before."""
    seen: Counter[T] = Counter()
    for key in keys:
        yield key, seen[key]
        seen[key] += 1


def rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of pairs in order of their first members, the most whose second members rise, too (patience sorting)."""
    tops: list[int] = []
    last: list[int] = []  # of each pile, which pair is on top
    below: list[int] = []
    for at, (_, b) in enumerate(pairs):
        pile = bisect_left(tops, b)
        below.append(last[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(b)
            last.append(at)
        else:
            tops[pile], last[pile] = b, at
    out: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        out.append(pairs[at])
        at = below[at]
    return out[::-1]
