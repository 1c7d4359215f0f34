"""Which requests stand for each other where none is the same: by what they say, in their order. Pure.

A small gap is solved in full: of all pairings that keep the order, the one in which most is alike. In a large one, as
where a prompt was changed and so each request of a lane, anchors are found first: what each request says that the one
before it did not, which in a conversation is its newest message.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tapeproxy.tapes.alignment import anchor, rising
from tapeproxy.tapes.cards import Ask
from tapeproxy.tapes.identity import Identity
from tapeproxy.tapes.nearness import similarity
from tapeproxy.tapes.sides import Event, Side
from tapeproxy.tapes.wording import shared_ends

_IN_FULL = 400
"""Pairs of requests that are all compared."""
_MOST = 100
"""Requests of a gap that is solved in full."""
_PARSED = 1 << 19
"""Bytes of bodies that are compared by their JSON; longer ones by their ends alone."""
_END = 1 << 14
_ALIKE = 0.6
"""Requests that are less alike are not each other: to go to the same place alone makes 0.5."""
_STRINGS = 32
_STRING = re.compile(rb'"((?:[^"\\]|\\.){6,200})')

type Pair = tuple[Event | None, Event | None]


@dataclass
class Gap:
    """Events of two lanes of which none is the same."""

    ours: Side
    theirs: Side
    a: Sequence[Event]
    b: Sequence[Event]
    anchors: bool = field(default=True)

    def pairs(self) -> Iterator[Pair]:
        """Each event once, with the one that stands for it, if there is one."""
        if not self.a or not self.b:
            yield from ((event, None) for event in self.a)
            yield from ((None, event) for event in self.b)
        elif len(self.a) * len(self.b) <= _IN_FULL and len(self.a) + len(self.b) <= _MOST:
            yield from self._in_full()
        elif self.anchors:
            yield from self._by_news()
        else:
            yield from self._by_place()

    def _in_full(self) -> Iterator[Pair]:
        a, b = self.a, self.b
        scores = _scores(self)
        best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i in range(len(a) - 1, -1, -1):
            for j in range(len(b) - 1, -1, -1):
                taken = best[i + 1][j + 1] + scores[i][j] if scores[i][j] > 0 else 0.0
                best[i][j] = max(taken, best[i + 1][j], best[i][j + 1])
        i = j = 0
        while i < len(a) or j < len(b):
            if i < len(a) and j < len(b) and scores[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + scores[i][j]:
                yield a[i], b[j]
                i, j = i + 1, j + 1
            elif j == len(b) or (i < len(a) and best[i][j] == best[i + 1][j]):
                yield a[i], None
                i += 1
            else:
                yield None, b[j]
                j += 1

    def _by_news(self) -> Iterator[Pair]:
        kept = rising(_same_news(_news(self.ours, self.a), _news(self.theirs, self.b)))
        ends = [(-1, -1), *kept, (len(self.a), len(self.b))]
        for (a0, b0), (a1, b1) in pairwise(ends):
            inner = Gap(self.ours, self.theirs, self.a[a0 + 1 : a1], self.b[b0 + 1 : b1], anchors=False)
            yield from inner.pairs()
            if a1 < len(self.a):
                yield self.a[a1], self.b[b1]

    def _by_place(self) -> Iterator[Pair]:
        found = anchor([event.place for event in self.a], [event.place for event in self.b])
        pairs = dict(pair for pair in found.pairs if pair not in found.moved)
        taken = set(pairs.values())
        for at, event in enumerate(self.a):
            yield event, self.b[pairs[at]] if at in pairs else None
        yield from ((None, event) for at, event in enumerate(self.b) if at not in taken)


def _scores(gap: Gap) -> list[list[float]]:
    """How much more alike than needed each pair is."""
    asks = [[side.ask(event.number) for event in events] for side, events in _sides(gap)]
    if len(gap.a) == len(gap.b) == 1:  # most gaps are such, and often the ends of the two say enough
        near = _margin(_roughly(_outline(gap.a[0], asks[0][0]), _outline(gap.b[0], asks[1][0])))
        if near:
            return [[near]]
    if sum(len(ask.body) for side in asks for ask in side) <= _PARSED:
        known = [[_identity(ask) for ask in side] for side in asks]
        return [[_margin(_alike(a, b)) for b in known[1]] for a in known[0]]
    short = [
        [_outline(event, ask) for event, ask in zip(events, side, strict=True)]
        for (_, events), side in zip(_sides(gap), asks, strict=True)
    ]
    return [[_margin(_roughly(a, b)) for b in short[1]] for a in short[0]]


def _outline(event: Event, ask: Ask) -> tuple[bytes, bytes]:
    """Where a request went, and how its body begins and ends."""
    return event.place, ask.body if len(ask.body) <= 2 * _END else ask.body[:_END] + ask.body[-_END:]


def _sides(gap: Gap) -> tuple[tuple[Side, Sequence[Event]], tuple[Side, Sequence[Event]]]:
    return (gap.ours, gap.a), (gap.theirs, gap.b)


def _identity(ask: Ask) -> Identity | None:
    try:
        return ask.identity()
    except ValueError:
        return None


def _alike(one: Identity | None, other: Identity | None) -> float:
    return 0.0 if one is None or other is None else similarity(one, other)


def _margin(score: float) -> float:
    return score - _ALIKE + 1e-9 if score >= _ALIKE else 0.0


def _roughly(one: tuple[bytes, bytes], other: tuple[bytes, bytes]) -> float:
    if one[0] != other[0]:
        return 0.0
    longer = max(len(one[1]), len(other[1]))
    return 0.5 + 0.5 * (sum(shared_ends(one[1], other[1])) / longer if longer else 1.0)


def _news(side: Side, events: Sequence[Event]) -> Iterator[tuple[bytes, ...]]:
    """The last strings that each request has where it differs from the one before it."""
    before = b""
    for event in events:
        body = side.ask(event.number).body
        start, end = shared_ends(before, body)
        middle = body[max(start, len(body) - end - _END) : len(body) - end]
        yield tuple(dict.fromkeys(_STRING.findall(middle)[-_STRINGS:]))
        before = body


def _same_news(ours: Iterator[tuple[bytes, ...]], theirs: Iterator[tuple[bytes, ...]]) -> list[tuple[int, int]]:
    """Positions of requests that bring the same news, where no other request does, by the first of each pair."""
    places = [_once(side) for side in (ours, theirs)]
    newest = [{at: text for text, at in side.items()} for side in places]
    votes: dict[tuple[int, int], int] = {}
    for text, at in places[0].items():
        if (to := places[1].get(text)) is not None:
            # What a request ends in is its own; what comes before that may be an earlier one's that is missing.
            own = newest[0][at] == newest[1][to] == text
            votes[at, to] = votes.get((at, to), 0) + 1 + own * _STRINGS
    taken: tuple[set[int], set[int]] = (set(), set())
    for at, to in sorted(votes, key=lambda pair: (-votes[pair], pair)):
        if at in taken[0] or to in taken[1]:
            del votes[at, to]
        else:
            taken[0].add(at)
            taken[1].add(to)
    return sorted(votes)


def _once(side: Iterator[tuple[bytes, ...]]) -> dict[bytes, int]:
    """The texts that one request alone brings, with its position."""
    found: dict[bytes, int] = {}
    more: set[bytes] = set()
    for at, texts in enumerate(side):
        for text in texts:
            if text in found:
                more.add(text)
            found[text] = at
    return {text: at for text, at in found.items() if text not in more}
