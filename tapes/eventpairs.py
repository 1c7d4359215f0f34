"""Which events of two runs stand for each other: lane by lane, by identity and occurrence, then by likeness. Pure."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence

from tapeproxy.tapes.alignment import anchor
from tapeproxy.tapes.comparisons import Change
from tapeproxy.tapes.gaps import Gap
from tapeproxy.tapes.lanepairs import LaneTree, pair_lanes
from tapeproxy.tapes.sides import NO_LANE, Event, Side, lane_keys

type Pair = tuple[Event | None, Event | None, tuple[Change, ...]]
"""An event of each side, one of which may be missing, and whether it is elsewhere: in another `lane` or `order`."""
type Pairs = list[tuple[str | None, str | None, list[Pair]]]
"""Lanes that stand for each other, by their ids, with their events."""


def pair_events(one: Side, other: Side) -> Pairs:
    """All events of both sides, whose keys are settled, each once. The other way round it is the mirror image."""
    # Which of two moved is a matter of taste; it must not be one of who comes first.
    if one.digest() <= other.digest():
        return _aligned(one, other)
    return [(b, a, [(y, x, how) for x, y, how in pairs]) for a, b, pairs in _aligned(other, one)]


def _aligned(one: Side, other: Side) -> Pairs:
    if not (one.laned and other.laned):
        return [(NO_LANE, NO_LANE, list(_unordered(one, other, one.events, other.events)))]
    ours, theirs = one.by_lane(), other.by_lane()
    trees = [LaneTree(lane_keys(lanes), side.tape.lanes) for side, lanes in ((one, ours), (other, theirs))]
    pairs = [(NO_LANE, NO_LANE), *pair_lanes(*trees)]
    out: Pairs = [
        (a, b, list((_unordered if a == NO_LANE else _ordered)(one, other, ours.get(a, []), theirs.get(b, []))))
        for a, b in pairs
    ]
    alone = ours.keys() - {a for a, _ in pairs}, theirs.keys() - {b for _, b in pairs}
    out += [(lane, None, [(event, None, ()) for event in ours[lane]]) for lane in sorted(alone[0])]
    out += [(None, lane, [(None, event, ()) for event in theirs[lane]]) for lane in sorted(alone[1])]
    return _moved_lanes(out)


def _ordered(one: Side, other: Side, ours: Sequence[Event], theirs: Sequence[Event]) -> Iterator[Pair]:
    """The events of two lanes, in the order of ours."""
    found = anchor([event.key for event in ours], [event.key for event in theirs])
    pairs: list[Pair] = [(ours[a], theirs[b], ("order",) if (a, b) in found.moved else ()) for a, b in found.pairs]
    for left, right in found.gaps:
        gap = Gap(one, other, [ours[at] for at in left], [theirs[at] for at in right])
        pairs += [(a, b, ()) for a, b in gap.pairs()]
    return iter(_in_order(pairs, ours, theirs))


def _unordered(one: Side, other: Side, ours: Sequence[Event], theirs: Sequence[Event]) -> Iterator[Pair]:
    """The events of runs that do not say whose they are: the same answer to the same request is the same event."""
    left, right = dict.fromkeys(range(len(ours))), dict.fromkeys(range(len(theirs)))
    pairs: list[Pair] = []
    keys: tuple[Callable[[Event], Hashable], ...] = (lambda e: (e.key, e.answer), lambda e: e.key)
    for key in keys:
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for at in right:
            waiting[key(theirs[at])].append(at)
        for at in list(left):
            if places := waiting.get(key(ours[at])):
                to = places.popleft()
                pairs.append((ours[at], theirs[to], ()))
                del left[at], right[to]
    gap = Gap(one, other, [ours[at] for at in left], [theirs[at] for at in right])
    pairs += [(a, b, ()) for a, b in gap.pairs()]
    return iter(_in_order(pairs, ours, theirs))


def _in_order(pairs: list[Pair], ours: Sequence[Event], theirs: Sequence[Event]) -> list[Pair]:
    """Pairs by ours; what only theirs has comes after what stood before it there."""
    at = {event.number: place for place, event in enumerate(ours)}
    to = {event.number: place for place, event in enumerate(theirs)}
    stands = {b.number: at[a.number] for a, b, _ in pairs if a is not None and b is not None}
    last, after = -1, dict[int, int]()
    for event in theirs:
        last = stands.get(event.number, last)
        after[event.number] = last

    def place(pair: Pair) -> tuple[int, int, int]:
        a, b, _ = pair
        if a is not None:
            return at[a.number], 0, 0
        assert b is not None
        return after[b.number], 1, to[b.number]

    return sorted(pairs, key=place)


def _moved_lanes(found: Pairs) -> Pairs:
    """What one lane lost and another got is one event."""
    lost: defaultdict[bytes, deque[Event]] = defaultdict(deque)
    for _, _, pairs in found:
        for a, b, _ in pairs:
            if b is not None and a is None:
                lost[b.key].append(b)
    taken: set[int] = set()
    out: Pairs = []
    for ours, theirs, pairs in found:
        kept: list[Pair] = []
        for a, b, how in pairs:
            if a is not None and b is None and lost.get(a.key):
                got = lost[a.key].popleft()
                taken.add(got.number)
                how = () if NO_LANE in (a.lane, got.lane) else ("lane",)
                kept.append((a, got, how))
            else:
                kept.append((a, b, how))
        out.append((ours, theirs, kept))
    return [
        (ours, theirs, [(a, b, how) for a, b, how in pairs if a is not None or b is None or b.number not in taken])
        for ours, theirs, pairs in out
    ]
