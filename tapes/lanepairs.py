"""Which lanes of two runs stand for each other. Pure; knows ids, names and what was asked, as digests.

Lanes have the same ids in every run of one program. Of another program, or of a changed one, the ids may have moved
on; then lanes are told by what they ask and by their names, parent by parent.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest

from blake3 import blake3

from tapeproxy.tapes.bodyforms import framed
from tapeproxy.tapes.records import Lane

_COMPARED = 2500
"""Pairs of siblings that are compared by what they have in common; of more, only what is equal counts."""
_ENOUGH = 0.25
_KEPT = 64
"""Keys of a lane and its descendants that are kept to tell it by: the smallest, which are a fair sample."""
_NUMBERED = re.compile(r"([a-z]+)([0-9]+)")
# What a thread, task or process is called that nobody named; its number is that of another one in the next run.
_UNNAMED = re.compile(r"(?:Thread|Task|Process|Dummy|ThreadPoolExecutor|ForkPoolWorker|SpawnPoolWorker)[-_ ]?\d.*")
_ROOT = ""


class LaneTree:
    """The lanes of a run that asked something, with their ancestors. `keys`: what each asked, in its order."""

    def __init__(self, keys: Mapping[str, Sequence[bytes]], records: Iterable[Lane] = ()) -> None:
        self._records = {record.id: record for record in records}
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        self._digests: dict[str, bytes] = {}
        self._contents: dict[str, frozenset[bytes]] = {}
        for lane in sorted(_with_ancestors(keys), key=_depth, reverse=True):
            self._add(lane, keys.get(lane, ()))

    def children(self, lane: str) -> list[str]:
        """The lanes that `lane` began, in the order of their numbers; of the empty one, those that have no parent."""
        return sorted(self._children.get(lane, ()), key=_natural)

    def kind(self, lane: str) -> str:
        """What a lane is: thread, task, process …"""
        record = self._records.get(lane)
        return record.what if record is not None else ""

    def name(self, lane: str) -> str:
        """What the agent calls a lane; empty where that is only a number."""
        record = self._records.get(lane)
        name = (record.name or "") if record is not None else ""
        return "" if _UNNAMED.fullmatch(name) else name

    def digest(self, lane: str) -> bytes:
        """A digest of what a lane and its descendants asked."""
        return self._digests[lane]

    def likeness(self, lane: str, other: "LaneTree", theirs: str) -> float:
        """How much of what was asked two lanes have in common, from 0 to 1."""
        a, b = self._contents[lane], other._contents[theirs]
        return len(a & b) / max(len(a), len(b), 1)

    def _add(self, lane: str, own: Sequence[bytes]) -> None:
        """Children come before their parents."""
        digest = blake3(b"".join(own))
        contents = set(own)
        for child in self.children(lane):
            digest.update(framed(self._digests[child]))
            contents |= self._contents[child]
        self._digests[lane] = digest.digest()
        self._contents[lane] = frozenset(nsmallest(_KEPT, contents))
        self._children[_parent(lane)].append(lane)


def pair_lanes(ours: LaneTree, theirs: LaneTree) -> Iterator[tuple[str, str]]:
    """The lanes that stand for each other, parents before their children."""
    waiting = [(_ROOT, _ROOT)]
    while waiting:
        parents = waiting.pop()
        for pair in _Siblings(ours, theirs, ours.children(parents[0]), theirs.children(parents[1])).pairs():
            yield pair
            waiting.append(pair)


class _Siblings:
    """The children of two lanes that stand for each other; `pairs` takes the surest first."""

    def __init__(self, ours: LaneTree, theirs: LaneTree, a: list[str], b: list[str]) -> None:
        self._ours, self._theirs = ours, theirs
        self._a, self._b = dict.fromkeys(a), dict.fromkeys(b)

    def pairs(self) -> Iterator[tuple[str, str]]:
        yield from self._equal(lambda tree, lane: (lane, tree.digest(lane)))
        yield from self._equal(lambda tree, lane: (tree.kind(lane), tree.name(lane), tree.digest(lane)))
        yield from self._equal(lambda tree, lane: tree.digest(lane))
        yield from self._equal(lambda tree, lane: (tree.kind(lane), tree.name(lane)), once=True)
        yield from self._likely()
        yield from self._equal(lambda tree, lane: (lane, tree.kind(lane)))
        yield from self._equal(lambda tree, lane: tree.kind(lane))

    def _equal(self, key: Callable[[LaneTree, str], Hashable], *, once: bool = False) -> Iterator[tuple[str, str]]:
        """Pairs of the same key, in order. `once`: only of a name that each side has just once."""
        keys_a = {lane: key(self._ours, lane) for lane in self._a}
        found: defaultdict[Hashable, deque[str]] = defaultdict(deque)
        for lane in self._b:
            found[key(self._theirs, lane)].append(lane)
        counts = Counter(keys_a.values())
        for lane, wanted in keys_a.items():
            if once and (counts[wanted] > 1 or len(found[wanted]) > 1 or not self._ours.name(lane)):
                continue
            if found[wanted]:
                yield self._take(lane, found[wanted].popleft())

    def _likely(self) -> Iterator[tuple[str, str]]:
        if len(self._a) * len(self._b) > _COMPARED:
            return
        scores = [
            (-self._ours.likeness(a, self._theirs, b), a != b, at, to, a, b)
            for at, a in enumerate(self._a)
            for to, b in enumerate(self._b)
        ]
        for score, _, _, _, a, b in sorted(scores):
            if -score >= _ENOUGH and a in self._a and b in self._b:
                yield self._take(a, b)

    def _take(self, a: str, b: str) -> tuple[str, str]:
        del self._a[a], self._b[b]
        return a, b


def _with_ancestors(lanes: Iterable[str]) -> set[str]:
    out: set[str] = set()
    for lane in lanes:
        while lane and lane not in out:
            out.add(lane)
            lane = _parent(lane)
    return out


def _parent(lane: str) -> str:
    return lane.rpartition("/")[0]


def _depth(lane: str) -> int:
    return lane.count("/")


def depth_first(lane: str) -> tuple[tuple[int, str], ...]:
    """Sorts a lane before its children, and those by their numbers."""
    return tuple((len(part), part) for part in lane.split("/"))


def _natural(lane: str) -> tuple[str, int, str]:
    last = lane.rpartition("/")[2]
    found = _NUMBERED.fullmatch(last)
    return (found[1], int(found[2]), lane) if found else (last, -1, lane)
