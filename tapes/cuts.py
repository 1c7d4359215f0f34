"""Where the lanes of a fork leave the tape. Pure: knows positions of requests and clock readings, not answers."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass

from tapeproxy.tapes.exchanges import Tape, outlines

UNLANED = ""
"""In the place of a lane's id, for requests that no lane made (curl, Node)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Up to where a lane of the future is the tape's: its first `requests` requests, and the rest of what it does until
    it has read its clock `reads` times and met others `meetings` times.

    `meetings` None: the tape has no edges, and `reads` is where the lane's clock was past the branch.
    """

    requests: int
    reads: int
    meetings: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What of an exchange says where its lane stands. Times in nanoseconds after the tape's start."""

    number: int
    place: int
    reads: int
    asked: int
    ended: int


def rows_of(tape: Tape) -> dict[str, list[Row]]:
    """The exchanges of each lane in its order."""
    lanes: dict[str, list[Row]] = {}
    for one in outlines(tape.exchanges):
        asked = one.request
        rows = lanes.setdefault(asked.lane or UNLANED, [])
        ended = asked.t if one.end is None else one.end.t
        rows.append(Row(one.number, len(rows) if asked.n is None else asked.n, asked.reads or 0, asked.t, ended))
    for rows in lanes.values():
        rows.sort(key=lambda row: row.place)
    return lanes


def with_rest_of_lanes(rows: Mapping[str, list[Row]], after: frozenset[int], branch: set[int]) -> frozenset[int]:
    """`after`, and whatever a lane does after one of these or of the branch, should the causal order not say so."""
    found = set(after)
    for of_lane in rows.values():
        firsts = [at for at, row in enumerate(of_lane) if row.number in after]
        firsts += [at + 1 for at, row in enumerate(of_lane) if row.number in branch]
        found.update(row.number for row in of_lane[min(firsts, default=len(of_lane)) :])
    return frozenset(found)


def firsts_of(rows: Mapping[str, list[Row]], live: Container[int], branch: Container[int]) -> dict[str, int]:
    """For each lane of the future, the place of its first request that is not the tape's."""
    firsts: dict[str, int] = {}
    for lane, of_lane in rows.items():
        places = [at for at, row in enumerate(of_lane) if row.number in live]
        places += [at + 1 for at, row in enumerate(of_lane) if row.number in branch and row.number not in live]
        if places:
            firsts[lane] = min(places)
    return firsts


@dataclass(frozen=True, slots=True)
class Frontier:
    """What is known of where lanes leave the tape.

    `firsts`: the place in a lane's rows of its first request that is not the tape's. `since`: the moment on the tape
    before which a lane can have read nothing that the branch changes. `askers`: the lanes that get a changed answer.
    `reached`: of a tape with edges, how many requests and meetings each lane had made before it knew of the branch.
    """

    firsts: Mapping[str, int]
    since: Callable[[str], int]
    askers: Container[str] = ()
    reached: Mapping[str, tuple[int, int]] | None = None


def cuts_of(tape: Tape, rows: Mapping[str, list[Row]], frontier: Frontier) -> dict[str, Cut]:
    """The cut of each lane of the future, by id."""
    firsts, reached = frontier.firsts, frontier.reached or {}
    if not firsts:
        return {}
    ends = {end.lane: end.reads for end in tape.lane_ends}
    jumps: dict[str, list[tuple[int, int]]] = {}
    for clock in tape.clocks:
        if clock.lane in firsts:
            jumps.setdefault(clock.lane, []).append((clock.n, clock.ns))
    cut: dict[str, Cut] = {}
    for lane, at in firsts.items():
        of_lane = rows.get(lane, [])
        low = of_lane[at - 1].reads if at else 0
        high = of_lane[at].reads if at < len(of_lane) else max(ends.get(lane, 0), low)
        late = [n for n, ns in jumps.get(lane, ()) if n >= low and ns >= frontier.since(lane)]
        requests = of_lane[at].place if at < len(of_lane) else of_lane[-1].place + 1 if of_lane else 0
        cut[lane] = Cut(requests, min([*late, high]), 0 if lane in frontier.askers else None)
    origins = {lane.id: lane.origin for lane in tape.lanes if lane.origin is not None}
    for lane, (asked, met) in reached.items():
        later = lane in cut and asked > cut[lane].requests  # it is what asks anew
        if lane != UNLANED and lane not in frontier.askers and not later:
            begins = _begins_in(origins.get(lane), reached, frontier.askers)
            cut[lane] = Cut(asked, 0, 0 if begins else met + 1)
    for lane in {upper for one in cut for upper in above(one)} - cut.keys():
        # It may have heard from the lane below it, and then start other ones, or ask what it did not.
        of_lane = rows.get(lane, [])
        cut[lane] = Cut(of_lane[-1].place + 1 if of_lane else 0, ends.get(lane, 0))
    if UNLANED not in rows:
        cut[UNLANED] = Cut(0, 0)
    return cut


def _begins_in(
    origin: tuple[str, int, int] | None, reached: Mapping[str, tuple[int, int]], askers: Container[str]
) -> bool:
    """Whether a lane was made by one that knew of the branch by then. An answer counts as met when it has come."""
    if origin is None or origin[0] not in reached:
        return False
    known = reached[origin[0]]
    return known <= origin[1:] if origin[0] in askers else known < origin[1:]


def above(lane: str) -> Iterator[str]:
    """The lanes above this one, the nearest first."""
    while lane := lane.rpartition("/")[0]:
        yield lane


def lanes_of(tape: Tape, rows: Mapping[str, list[Row]]) -> frozenset[str]:
    """All lanes of a tape."""
    told = {lane.id for lane in tape.lanes} | {clock.lane for clock in tape.clocks}
    return frozenset(told | rows.keys()) - {UNLANED}
