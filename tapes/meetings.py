"""Where a tape's lanes learn of each other: from its edges, or, of a tape without edges, from its lanes and times.

A tape says in its head (`rules.edges`) that it has edges. Flows that have no lane, and lanes whose names depend on
timing, meet by time, with everybody: what was answered before they ask may be known to them.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tapeproxy.tapes.causalgraph import Asking, Meeting, Place, after
from tapeproxy.tapes.exchanges import Exchange, Tape, outlines

EDGE_RULES = 1
"""The version of the rules for edges in a head's `rules.edges`; a tape that does not say has none."""
NO_LANE = ""
"""Stands for the lane of requests that say nothing of theirs."""


def has_edges(tape: Tape) -> bool:
    """Whether the tape says where its lanes met."""
    return tape.head.rules.get("edges") == EDGE_RULES


def askings_of(tape: Tape) -> list[Asking]:
    """The requests of a tape, lane by lane. Requests without a lane count in the order of the tape."""
    return [Asking(*_seat(one), one.number) for one in outlines(tape.exchanges)]


def meetings_of(tape: Tape, askings: Sequence[Asking]) -> list[Meeting]:
    """All meetings of a tape's lanes."""
    times = _times(tape)
    lanes = {one.lane for one in askings}
    floating = {lane for lane in lanes if is_floating(lane)}
    found = list[Meeting]()
    for lane in lanes - floating:
        parent = _parent(lane, lanes)
        if parent is not None:
            found += _by_time(lane, times[lane][:1], {parent: times[parent]})
    for parent, children in _families(lanes - floating).items():
        found += _by_time(parent, times[parent], {child: times[child] for child in children})
    for lane in floating:
        others = {other: times[other] for other in lanes - {lane}}
        found += _by_time(lane, times[lane], others)
        for other in lanes - floating:
            found += _by_time(other, times[other], {lane: times[lane]})
    return _numbered(found)


def names_of(tape: Tape) -> dict[str, str]:
    """What the agent calls its lanes, where it calls no two the same."""
    names = {lane.id: lane.name for lane in tape.lanes if lane.name}
    times = Counter(names.values())
    return {lane: name for lane, name in names.items() if times[name] == 1}


def is_floating(lane: str) -> bool:
    """Whether nobody knows what the lane descends from: its name is chance, or it has none."""
    return lane == NO_LANE or lane.startswith("?")


type _Times = list[tuple[int, int, int]]
"""Of a lane's requests in their order: number in the lane, when it was asked, when its answer had come."""
_NEVER = 1 << 62


def _seat(exchange: Exchange) -> tuple[str, int]:
    request = exchange.request
    if request.lane is None or request.n is None:
        return NO_LANE, exchange.number
    return request.lane, request.n


def _times(tape: Tape) -> Mapping[str, _Times]:
    times: dict[str, _Times] = {}
    for one in outlines(tape.exchanges):
        lane, n = _seat(one)
        times.setdefault(lane, []).append((n, one.request.t, _NEVER if one.end is None else one.end.t))
    for row in times.values():
        row.sort()
    return times


def _by_time(lane: str, asked: _Times, others: Mapping[str, _Times]) -> Iterator[Meeting]:
    """Before each of these requests the lane learns of the others' answers that had come since the one before."""
    ends = sorted((end, other, n) for other, row in others.items() for n, _, end in row)
    before = 0
    for n, t, _ in asked:
        upto = bisect_right(ends, t, key=lambda one: one[0])
        known = {other: m for _, other, m in ends[before:upto]}
        before = max(before, upto)
        if known:
            yield Meeting(lane, n, 0, tuple(after(other, m + 1) for other, m in sorted(known.items())))


def _parent(lane: str, lanes: Iterable[str]) -> str | None:
    """The nearest lane above this one that is among these."""
    while "/" in lane:
        lane = lane.rpartition("/")[0]
        if lane in lanes:
            return lane
    return None


def _families(lanes: Iterable[str]) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for lane in sorted(lanes):
        parent = _parent(lane, lanes)
        if parent is not None:
            families.setdefault(parent, []).append(lane)
    return families


def _numbered(found: Iterable[Meeting]) -> list[Meeting]:
    """The same, those of one lane at one place as one, and numbered."""
    merged: dict[tuple[str, int | None], set[Place]] = {}
    for one in found:
        merged.setdefault((one.lane, one.asked), set()).update(one.sources)
    return [Meeting(lane, asked, 0, tuple(sorted(sources))) for (lane, asked), sources in merged.items()]
