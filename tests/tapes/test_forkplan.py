"""What a fork keeps of its tape, and where each lane leaves it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.cuts import UNLANED, Cut
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape, outlines
from tapeproxy.tapes.forkplan import ForkPlan, events, first, fork_at, kept
from tapeproxy.tapes.lanes import EDGE_RULES, LaneTag
from tapeproxy.tapes.records import Clock, Edge, End, Head, Lane, LaneEnd, Request, Response

MS = 1_000_000


def exchange(number: int, lane: str | None, n: int | None, *, reads: int = 0, inside: bool = False) -> Exchange:
    """An exchange that begins at `number` * 100 ms and is answered 10 ms later, whole after 20."""
    t = number * 100 * MS
    request = Request(
        t=t, method=b"GET", url=b"http://x/%d" % number, lane=lane, n=n, reads=reads, inside=inside, body=b"%d" % number
    )
    response = Response(t=t + 10 * MS, of=number, status=200)
    return Exchange(number, number, request, response, end=End(t=t + 20 * MS, of=number, how="complete"))


def tape(
    *exchanges: Exchange, clocks: Sequence[tuple[str, int, int]] = (), ends: Sequence[tuple[str, int]] = ()
) -> Tape:
    lanes = {one.request.lane: None for one in exchanges if one.request.lane}
    return Tape(
        Head(started_at="2026-01-01T00:00:00Z"),
        list(exchanges),
        lanes=[Lane(t=0, id=lane) for lane in lanes],
        clocks=[Clock(t=0, lane=lane, n=n, ns=ns) for lane, n, ns in clocks],
        lane_ends=[LaneEnd(t=0, lane=lane, reads=reads) for lane, reads in ends],
    )


def team() -> Tape:
    """A planner (1), two workers at once (2, 4 and 3, 5), a synthesizer in the planner's lane (6)."""
    return tape(
        exchange(1, "m", 0, reads=2),
        exchange(2, "m/t0", 0, reads=1),
        exchange(3, "m/t1", 0, reads=1),
        exchange(4, "m/t0", 1, reads=3),
        exchange(5, "m/t1", 1, reads=3),
        exchange(6, "m", 1, reads=9),
        clocks=[
            ("m", 0, 50 * MS),
            ("m", 3, 130 * MS),
            ("m", 7, 560 * MS),
            ("m/t0", 0, 190 * MS),
            ("m/t0", 2, 215 * MS),
        ],
        ends=[("m", 12), ("m/t0", 4), ("m/t1", 4)],
    )


class Order:
    """A causal order by hand: of each exchange, those after it."""

    def __init__(self, **future: set[int]) -> None:
        self._future = {int(name[1:]): found for name, found in future.items()}

    def order(self) -> Sequence[int]:
        return sorted(self._future)

    def future(self, number: int) -> frozenset[int]:
        return frozenset(self._future[number])

    def reached(self, number: int) -> Mapping[str, tuple[int, int]]:
        raise AssertionError(f"the tape has no edges, and {number} reaches nobody by them")


TEAM = Order(_1={2, 3, 4, 5, 6}, _2={4, 6}, _3={5, 6}, _4={6}, _5={6}, _6=set())


def other(one: Exchange) -> Exchange:
    """The exchange with another status."""
    assert one.response is not None
    return replace(one, response=replace(one.response, status=418))


@pytest.mark.parametrize(
    ("number", "mutate", "served", "live", "cut"),
    [
        (2, True, {1, 3, 5}, {4, 6}, {"m/t0": Cut(1, 2, 0), "m": Cut(1, 7)}),
        (4, True, {1, 2, 3, 5}, {6}, {"m/t0": Cut(2, 4, 0), "m": Cut(1, 7)}),
        (4, False, {1, 2, 3, 5}, {4, 6}, {"m/t0": Cut(1, 3), "m": Cut(1, 7)}),
        (1, True, set(), {2, 3, 4, 5, 6}, {"m": Cut(1, 3, 0), "m/t0": Cut(0, 0), "m/t1": Cut(0, 1)}),
        (6, True, {1, 2, 3, 4, 5}, set(), {"m": Cut(2, 12, 0)}),
        (0, False, set(), {1, 2, 3, 4, 5, 6}, {"m": Cut(0, 0, 0), "m/t0": Cut(0, 0, 0), "m/t1": Cut(0, 1, 0)}),
    ],
)
def test_a_fork_leaves_the_past_and_the_concurrent_alone(
    number: int, mutate: bool, served: set[int], live: set[int], cut: dict[str, Cut]
) -> None:
    parent = team()
    mutated = {number: other(parent.exchanges[number - 1])} if mutate else {}
    plan = fork_at(parent, TEAM, number, mutated)
    assert (plan.served, plan.live, plan.mutated) == (served, live, mutated)
    assert {lane: found for lane, found in plan.cut.items() if lane != UNLANED} == cut
    assert plan.branch == ((number,) if number else ())


def test_with_the_real_causality_of_a_tape_without_edges_the_workers_are_concurrent_too() -> None:
    parent = team()
    plan = fork_at(parent, Causality.of(parent), 2, {2: other(parent.exchanges[1])})
    assert {3, 5} <= plan.served
    assert plan.live == {4, 6}


def with_edges() -> Tape:
    """The team with its edges: the planner starts two workers and joins both; it reads its clock in between."""
    parent = team()
    parent.head = Head(started_at="2026-01-01T00:00:00Z", rules={"edges": EDGE_RULES})
    parent.lanes = [
        Lane(t=0, id="m"),
        Lane(t=0, id="m/t0", origin=("m", 1, 0)),
        Lane(t=0, id="m/t1", origin=("m", 1, 0)),
        Lane(t=0, id="m/t2", origin=("m", 1, 2)),
    ]
    parent.edges = [
        Edge(t=0, what="join", on="m/t0", lane="m", n=0, asked=1),
        Edge(t=0, what="join", on="m/t1", lane="m", n=1, asked=1),
    ]
    parent.exchanges = [*parent.exchanges, exchange(7, "m/t2", 0)]
    return parent


@pytest.mark.parametrize(
    ("number", "cut"),
    [
        (2, {"m/t0": Cut(1, 2, 0), "m": Cut(1, 0, 1), "m/t2": Cut(0, 0, 0)}),
        (3, {"m/t1": Cut(1, 3, 0), "m": Cut(1, 0, 2), "m/t2": Cut(0, 0, 0)}),
        (1, {"m": Cut(1, 3, 0), "m/t0": Cut(0, 0, 0), "m/t1": Cut(0, 0, 0), "m/t2": Cut(0, 0, 0)}),
        (6, {"m": Cut(2, 12, 0)}),
    ],
)
def test_with_edges_a_lane_leaves_the_tape_where_it_came_to_know(number: int, cut: dict[str, Cut]) -> None:
    parent = with_edges()
    plan = fork_at(parent, Causality.of(parent), number, {number: other(parent.exchanges[number - 1])})
    assert {lane: found for lane, found in plan.cut.items() if lane != UNLANED} == cut


def test_who_asks_anew_may_prepare_that_since_the_last_answer_of_the_tape() -> None:
    parent = with_edges()
    plan = fork_at(parent, Causality.of(parent), 6)
    assert plan.live == {6}
    assert plan.cut["m"] == Cut(1, 7)


@pytest.mark.parametrize(
    ("tag", "past", "live"),
    [
        (LaneTag("m", 0, 2), True, False),
        (LaneTag("m", 1, 9), False, True),
        (LaneTag("m/t0", 0, 1), True, False),
        (LaneTag("m/t0", 1, 3), False, True),
        (LaneTag("m/t0", 5, 3), False, True),
        (LaneTag("m/t1", 0, 1), True, False),
        (LaneTag("m/t1", 7, 1), True, False),
        (LaneTag("m/t2", 0, 0), False, True),  # the planner started another worker
        (LaneTag("m/t0/a4", 0, 0), False, True),
        (LaneTag("m/t1/a4", 0, 0), False, False),
        (LaneTag("?x", 0, 0), False, True),  # a thread of C code, of whichever lane
        (None, False, True),
    ],
)
def test_who_may_go_out_to_the_world(tag: LaneTag | None, past: bool, live: bool) -> None:
    parent = team()
    plan = fork_at(parent, TEAM, 2, {2: other(parent.exchanges[1])})
    assert (plan.is_past(tag), plan.may_be_live(tag)) == (past, live)


def test_requests_of_no_lane_stay_the_tape_s_where_none_of_them_is_in_the_future() -> None:
    parent = tape(exchange(1, None, None), exchange(2, "m", 0), exchange(3, "m", 1))
    plan = fork_at(parent, Order(_1={2, 3}, _2={3}, _3=set()), 2, {2: other(parent.exchanges[1])})
    assert not plan.may_be_live(None)
    plan = fork_at(parent, Order(_1={2, 3}, _2={3}, _3=set()), 1)
    assert plan.may_be_live(None)


def test_a_lane_above_the_future_without_requests_of_its_own_may_ask_something() -> None:
    parent = tape(exchange(1, "m/t0", 0), exchange(2, "m/t1", 0), ends=[("m", 5)])
    plan = fork_at(parent, Order(_1=set(), _2=set()), 1, {1: other(parent.exchanges[0])})
    assert plan.cut["m"] == Cut(0, 5)
    assert not plan.may_be_live(LaneTag("m/t1", 1, 0))
    assert plan.may_be_live(LaneTag("m/t7", 0, 0))


def test_what_a_lane_does_after_a_live_request_is_live_whatever_the_order_says() -> None:
    parent = tape(exchange(1, "m", 0), exchange(2, "m", 1), exchange(3, "m", 2))
    plan = fork_at(parent, Order(_1={2}, _2=set(), _3=set()), 1, {1: other(parent.exchanges[0])})
    assert plan.live == {2, 3}


def test_kept_is_what_may_be_served_with_its_own_numbers_and_the_changes() -> None:
    parent = team()
    parent.exchanges = [*parent.exchanges, exchange(7, "m", 2, inside=True)]
    mutated = {2: other(parent.exchanges[1])}
    order = Order(_1=set(), _2={4, 6, 7}, _3=set(), _4=set(), _5=set(), _6=set(), _7=set())
    found = kept(parent, fork_at(parent, order, 2, mutated)).exchanges
    assert [one.number for one in found] == [1, 2, 3, 5, 7]
    assert [one.number for one in outlines(found)] == [1, 2, 3, 5, 7]
    assert [one.response.status for one in found if one.response] == [200, 418, 200, 200, 200]
    assert [found.compared_body(at) for at in range(2)] == [b"1", b"2"]  # type: ignore[attr-defined]  # Shelved
    every = kept(parent, fork_at(parent, order, 2, mutated, rerun="changed")).exchanges
    assert [one.number for one in every] == [1, 2, 3, 4, 5, 6, 7]
    assert events(parent) == 6


@pytest.mark.parametrize("k", range(7))
def test_first_serves_so_many_of_the_causal_order(k: int) -> None:
    plan = first(team(), TEAM, k)
    assert plan.served == set(range(1, k + 1))
    assert plan.live == set(range(k + 1, 7))
    assert not plan.mutated
    assert plan.branch == ()


def test_first_cuts_each_lane_after_its_last_served_answer() -> None:
    plan = first(team(), TEAM, 3)
    assert {lane: found for lane, found in plan.cut.items() if lane != UNLANED} == {
        "m/t0": Cut(1, 3),
        "m/t1": Cut(1, 3),
        "m": Cut(1, 7),
    }
    assert first(team(), TEAM, 6).cut == {}


@pytest.mark.parametrize(("number", "words"), [(7, "no event 7"), (-1, "no event -1"), (99, "1 to 6")])
def test_a_number_that_is_not_on_the_tape_is_refused(number: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fork_at(team(), TEAM, number)


def test_what_can_t_be_forked_is_refused() -> None:
    parent = team()
    one, late = parent.exchanges[1], parent.exchanges[5]
    with pytest.raises(UsageError, match="event 6 can't be changed"):
        fork_at(parent, TEAM, 2, {2: other(one), 6: other(late)})
    plan = fork_at(parent, TEAM, 2, {2: other(one), 6: other(late)}, rerun="changed")
    assert set(plan.mutated) == {2, 6}
    assert plan.live == {4}
    with pytest.raises(UsageError, match="server of the run itself"):
        fork_at(tape(exchange(1, "m", 0, inside=True)), Order(_1=set()), 1)
    with pytest.raises(UsageError, match="6 events, not 7"):
        first(parent, TEAM, 7)


def test_a_request_that_is_edited_on_its_way_out_is_asked_anew() -> None:
    plan = fork_at(team(), TEAM, 4, outgoing={4: lambda request: request})
    assert plan.live == {4, 6}
    assert plan.branch == (4,)
    assert list(plan.outgoing) == [4]
    assert isinstance(fork_at(team(), TEAM, 4, outgoing={0: lambda request: request}), ForkPlan)
