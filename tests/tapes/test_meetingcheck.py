"""A replay in which lanes knew other things than on the tape; the same things in another order are none of that."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.meetingcheck import compare_meetings
from tapeproxy.tapes.records import Edge, Head, Lane, Request

NAMES = (Lane(t=0, id="m/t0", name="alice", origin=("m", 1, 0)), Lane(t=0, id="m/t1", name="bob", origin=("m", 1, 0)))


def edge(lane: str, asked: int, n: int, on: str, *at: int, what: str = "join", out: bool = False) -> Edge:
    place = (at[0], at[1]) if at else None
    return Edge(t=0, what=what, on=on, lane=lane, n=n, asked=asked, at=place, out=out)


# m asks 1; alice asks 2, bob asks 3; m joins both and asks 4
EDGES = (edge("m", 1, 0, "m/t0", 1, 0), edge("m", 1, 1, "m/t1", 1, 0))
SWAPPED = (edge("m", 1, 0, "m/t1", 1, 0), edge("m", 1, 1, "m/t0", 1, 0))
ASKED = (("m", 0), ("m/t0", 0), ("m/t1", 0), ("m", 1))


def tape_of(edges: Sequence[Edge] = EDGES, asked: Sequence[tuple[str, int]] = ASKED) -> Tape:
    exchanges = [
        Exchange(number, number, Request(t=number, method=b"GET", url=b"http://x/", lane=lane, n=n))
        for number, (lane, n) in enumerate(asked, 1)
    ]
    return Tape(Head(started_at="", rules={"edges": 1}), exchanges, lanes=list(NAMES), edges=list(edges))


ALL = frozenset({1, 2, 3, 4})
LOCK = Edge(t=0, what="acquired", on="m#x:0", lane="m", n=0)
KNEW = "lane m knew of other answers than on the tape when it made the request of exchange 4"
ALICE, BOB = "join of alice (m/t0) after its request 1", "join of bob (m/t1) after its request 1"


@pytest.mark.parametrize("now", [EDGES, SWAPPED, (*EDGES, LOCK), (*EDGES, edge("?m/e0", 0, 0, "m", 1, 0))])
def test_the_same_knowledge_is_no_drift(now: Sequence[Edge]) -> None:
    assert compare_meetings(tape_of(), now, NAMES, ALL) == []


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        (EDGES[:1], [(BOB, None)]),
        ((), [(ALICE, None), (BOB, None)]),
        ((EDGES[0], edge("m", 2, 1, "m/t1", 1, 0)), [(BOB, None)]),
        ((*EDGES, edge("m", 1, 2, "m/t7", 3, 0, what="get")), None),  # of a lane that asked nothing there
        (((edge("m", 1, 0, "m/t0", 0, 1)), EDGES[1]), [(ALICE, "join of alice (m/t0) before it asked")]),
    ],
)
def test_a_lane_that_knows_other_things(now: Sequence[Edge], wanted: list[tuple[str, str | None]] | None) -> None:
    drifts = compare_meetings(tape_of(), now, NAMES, ALL)
    if wanted is None:
        assert drifts == []
        return
    (drift,) = drifts
    assert drift.what == KNEW
    assert [(found.taped, found.asked) for found in drift.differences] == wanted


def test_a_lane_that_began_with_other_knowledge() -> None:
    late = (NAMES[0], replace(NAMES[1], origin=None))
    (drift,) = compare_meetings(tape_of(), EDGES, late, ALL)
    assert drift.request == "lane m/t1"
    (found,) = drift.differences
    assert (found.where, found.taped, found.asked) == ("requests and answers of lane m that it knew of", "2", "0")


def test_only_what_was_asked_counts() -> None:
    assert compare_meetings(tape_of(), EDGES[:1], NAMES, ALL - {3, 4}) == []
    assert compare_meetings(tape_of(), EDGES[:1], NAMES, ALL - {3}) == []


def test_lanes_of_tools_do_not_run_in_a_replay() -> None:
    tool = edge("m/k0", 0, 0, "m/t0", 1, 0)
    assert compare_meetings(tape_of((*EDGES, tool)), EDGES, NAMES, ALL) == []
