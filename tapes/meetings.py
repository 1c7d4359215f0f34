"""Where a tape's lanes learn of each other: from its edges, or, of a tape without edges, from its lanes and times.

A tape says in its head (`rules.edges`) that it has edges. Flows that have no lane, and lanes whose names depend on
timing, meet by time, with everybody: what was answered before they ask may be known to them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from tapeproxy.tapes.causalgraph import Asking, Meeting, Place, after, end_of, in_request
from tapeproxy.tapes.exchanges import Exchange, Tape, outlines
from tapeproxy.tapes.lanes import ANSWER, NO_LANE, SERVE, START, has_edges, is_floating
from tapeproxy.tapes.records import Edge

type _Times = list[tuple[int, int, int]]
"""Of a lane's requests in their order: number in the lane, when it was asked, when its answer had come."""
_NEVER = 1 << 62
_LATE = 1 << 61
"""The number of a meeting that comes right before a request."""


def askings_of(tape: Tape) -> list[Asking]:
    """The requests of a tape, lane by lane. Requests without a lane count in the order of the tape."""
    answers = _answers(tape.edges) if has_edges(tape.head) else {}
    seats = ((*_seat(one), one.number) for one in outlines(tape.exchanges))
    return [Asking(lane, n, number, answers.get(f"{lane}#{n}", ())) for lane, n, number in seats]


def meetings_of(tape: Tape, askings: Sequence[Asking]) -> list[Meeting]:
    """All meetings of a tape's lanes."""
    times = _times(tape)
    lanes = {one.lane for one in askings}
    floating = {lane for lane in lanes if is_floating(lane)}
    found = _by_edges(tape, lanes) if has_edges(tape.head) else [*_by_kinship(times, lanes - floating)]
    for lane in floating:
        others = {other: times[other] for other in lanes - {lane}}
        found += _by_time(lane, times[lane], others)
        for other in lanes - floating:
            found += _by_time(other, times[other], {lane: times[lane]})
    return _merged(found)


def _by_edges(tape: Tape, lanes: Iterable[str]) -> list[Meeting]:
    """The meetings that a tape tells of."""
    edges = [edge for edge in tape.edges if edge.asked is not None]
    all_lanes = sorted({*lanes, *(lane.id for lane in tape.lanes), *(edge.lane for edge in edges)})
    tokens: dict[tuple[str, str], list[Place]] = {}
    origins: dict[str, list[Place]] = {}
    for made in tape.lanes:
        if made.origin is not None:
            origins.setdefault(made.id, []).append(after(*made.origin))
    for edge in (edge for edge in edges if edge.out):
        place = after(edge.lane, edge.asked or 0, edge.n)
        known = origins.setdefault(edge.on, []) if edge.what == START else tokens.setdefault((edge.what, edge.on), [])
        known.append(place)
    for lane in all_lanes:
        parent, _, kind = lane.rpartition("/")
        if kind.startswith("x") and lane not in origins:  # another process that was given its parent's lane
            origins[lane] = [after(parent, 0)]
    found = [Meeting(lane, None, 0, tuple(places)) for lane, places in origins.items()]
    for edge in (edge for edge in edges if not edge.out):
        if edge.what == SERVE:
            sources = [in_request(lane, int(n)) for lane, _, n in (edge.on.rpartition("#"),) if n.isdecimal()]
        elif edge.at is not None:
            sources = [after(edge.on, *edge.at)]
        else:
            sources = tokens.get((edge.what, edge.on)) or [*_ends(edge.on, all_lanes)]
        found.append(Meeting(edge.lane, edge.asked, edge.n, tuple(sources)))
    return found


def _answers(edges: Iterable[Edge]) -> dict[str, tuple[Place, ...]]:
    """By `LANE#n`: what was known to the server of the run that answered this request."""
    found: dict[str, tuple[Place, ...]] = {}
    for edge in edges:
        if edge.what == ANSWER and edge.asked is not None:
            found[edge.on] = (*found.get(edge.on, ()), after(edge.lane, edge.asked, edge.n))
    return found


def _ends(lane: str, lanes: Sequence[str]) -> Iterator[Place]:
    """The ends of a lane and of all below it; `lanes` are sorted."""
    yield end_of(lane)
    below = lane + "/"
    for at in range(bisect_left(lanes, below), len(lanes)):
        if not lanes[at].startswith(below):
            return
        yield end_of(lanes[at])


def _by_kinship(times: Mapping[str, _Times], lanes: AbstractSet[str]) -> Iterator[Meeting]:
    """Of a tape without edges: a lane knows what its parent had been answered before it first asked, and the parent
    what the lane had been answered before it asks."""
    for lane in lanes:
        parent = _parent(lane, lanes)
        if parent is not None:
            yield from _by_time(lane, times[lane][:1], {parent: times[parent]})
    for parent, children in _families(lanes).items():
        yield from _by_time(parent, times[parent], {child: times[child] for child in children})


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
            yield Meeting(lane, n, _LATE, tuple(after(other, m + 1) for other, m in sorted(known.items())))


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


def _merged(found: Iterable[Meeting]) -> list[Meeting]:
    """The same, those of one lane at one place as one."""
    merged: dict[tuple[str, int | None, int], set[Place]] = {}
    for one in found:
        merged.setdefault((one.lane, one.asked, one.n), set()).update(one.sources)
    return [Meeting(*place, tuple(sorted(sources))) for place, sources in merged.items()]
