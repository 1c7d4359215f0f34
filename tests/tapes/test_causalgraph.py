"""The algebra of clocks, held against a brute-force model: reachability in the graph of events."""

import random
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.causalgraph import Asking, Meeting, after, end_of, in_request
from tapeproxy.tapes.causality import Causality


class Run:
    """A run as it really went: its events in an order of time, each with what it came from."""

    def __init__(self, lanes: int, steps: Iterable[tuple[int, int, int]]) -> None:
        self.askings: list[Asking] = []
        self.meetings: list[Meeting] = []
        self.edges: list[tuple[int, int]] = []
        self.requests: dict[int, int] = {}
        self.answers: dict[int, int] = {}
        last: dict[str, int] = {}
        asked = dict.fromkeys(range(lanes), 0)
        met = dict.fromkeys(range(lanes), 0)
        pending: dict[int, tuple[int, int]] = {}
        events = 0
        for who, what, whom in steps:
            lane, other = f"l{who % lanes}", f"l{whom % lanes}"
            at, to = who % lanes, whom % lanes
            if at in pending:
                number, n = pending.pop(at)
                learned = (after(other, asked[to], met[to]),) if what == 0 and to != at and to not in pending else ()
                if learned and other in last:
                    self.edges.append((last[other], events))
                self.askings.append(Asking(lane, n, number, learned))
                self.answers[number] = events
            elif what < 2:
                number = len(self.requests) + 1
                pending[at] = number, asked[at]
                self.requests[number] = events
                asked[at] += 1
            elif to != at and other in last:
                source = in_request(other, asked[to] - 1) if to in pending else after(other, asked[to], met[to])
                self.meetings.append(Meeting(lane, asked[at], met[at], (source,)))
                self.edges.append((last[other], events))
                met[at] += 1
            else:
                continue
            if lane in last:
                self.edges.append((last[lane], events))
            last[lane] = events
            events += 1
        for at, (number, n) in pending.items():
            self.askings.append(Asking(f"l{at}", n, number))
            self.answers[number] = events
            self.edges.append((last[f"l{at}"], events))
            events += 1
        self.reach: list[set[int]] = [{event} for event in range(events)]
        for before, later in sorted(self.edges, key=lambda edge: edge[1]):
            self.reach[later] |= self.reach[before]
        self.own = {*self.requests.values(), *self.answers.values()}


RUNS = st.builds(
    Run,
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 9)), max_size=60),
)


@given(RUNS, st.randoms(use_true_random=False))
def test_agrees_with_reachability(run: Run, chance: random.Random) -> None:
    chance.shuffle(run.askings)
    chance.shuffle(run.meetings)
    causality = Causality(run.askings, run.meetings)
    assert not causality.broken
    numbers = list(run.requests)
    for a in numbers:
        happened = {b for b in numbers if run.answers[a] in run.reach[run.requests[b]]}
        assert causality.future(a) == happened
        known = run.reach[run.requests[a]] & run.own
        assert causality.rank(a) == len(known) == sum(causality.clock(a).values())
        for b in numbers:
            assert causality.before(a, b) == (b in happened)
    order = list(causality.order())
    assert sorted(order) == sorted(numbers)
    places = {number: place for place, number in enumerate(order)}
    for a in numbers:
        for b in numbers:
            if a != b and run.requests[a] in run.reach[run.requests[b]]:
                assert places[a] < places[b]
                assert causality.rank(a) < causality.rank(b)


def test_fork_and_join() -> None:
    # m asks, starts a and b, joins both, asks again; a and b ask twice each
    askings = [Asking("m", 0, 1), Asking("a", 0, 2), Asking("b", 0, 3), Asking("b", 1, 4), Asking("a", 1, 5)]
    meetings = [
        Meeting("a", None, 0, (after("m", 1),)),
        Meeting("b", None, 0, (after("m", 1),)),
        Meeting("m", 1, 0, (end_of("a"), end_of("b"))),
    ]
    causality = Causality([*askings, Asking("m", 1, 6)], meetings)
    assert causality.order() == (1, 2, 3, 5, 4, 6)
    assert [causality.rank(number) for number in range(1, 7)] == [1, 3, 3, 5, 5, 11]
    assert causality.clock(6) == {"a": 4, "b": 4, "m": 3}
    assert causality.future(2) == {5, 6}
    assert causality.concurrent(2, 4)
    assert not causality.concurrent(2, 2)


def test_a_server_is_asked_within_a_request() -> None:
    # the answer of 1 is made by s, which asks 2 while 1 waits
    askings = [Asking("m", 0, 1, (end_of("s"),)), Asking("s", 0, 2), Asking("m", 1, 3)]
    causality = Causality(askings, [Meeting("s", None, 0, (in_request("m", 0),))])
    assert causality.order() == (1, 2, 3)
    assert causality.future(1) == {3}
    assert causality.future(2) == {3}
    assert not causality.before(1, 2)
    assert causality.clock(2) == {"m": 1, "s": 1}


def test_circles_are_broken_in_one_place() -> None:
    askings = [Asking("a", 0, 1), Asking("b", 0, 2)]
    circle = [Meeting("a", 0, 0, (after("b", 1),)), Meeting("b", 0, 0, (after("a", 1),))]
    causality = Causality(askings, circle)
    assert causality.broken == [("b", "a")]
    assert causality.order() == (1, 2)
    assert causality.before(1, 2)


def test_two_requests_of_one_number_keep_their_order() -> None:
    causality = Causality([Asking("a", 0, 1), Asking("a", 0, 2), Asking("a", 1, 3)], [])
    assert causality.order() == (1, 2, 3)
    assert causality.clock(3) == {"a": 5}
    assert causality.before(1, 2)
