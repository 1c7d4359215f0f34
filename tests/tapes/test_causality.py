"""Causality of tapes without edges: lanes and times say what they can."""

from tapeproxy.tapes.causality import NO_LANE, Causality
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.records import End, Head, Lane, Request

type Row = tuple[str | None, int | None, int, int | None]


def tape_of(*rows: Row, lanes: tuple[Lane, ...] = ()) -> Tape:
    """A tape with exchanges of `(lane, n, asked at, answered at)`."""
    exchanges = [
        Exchange(
            number,
            number,
            Request(t=asked, method=b"GET", url=b"http://x/", lane=lane, n=n),
            end=None if ended is None else End(t=ended, of=number, how="complete"),
        )
        for number, (lane, n, asked, ended) in enumerate(rows, 1)
    ]
    return Tape(Head(started_at="2026-01-02T03:04:05Z"), exchanges, lanes=list(lanes))


FAN = (("m", 0, 0, 10), ("m/t0", 0, 20, 50), ("m/t1", 0, 21, 40), ("m/t1", 1, 45, 60), ("m", 1, 70, 80))


def test_workers_are_concurrent_and_what_follows_knows_them() -> None:
    causality = Causality.of(tape_of(*FAN))
    assert causality.future(1) == {2, 3, 4, 5}
    assert causality.future(2) == {5}
    assert causality.concurrent(2, 4)
    assert causality.clock(5) == {"m": 3, "m/t0": 2, "m/t1": 4}
    assert causality.order() == (1, 2, 3, 4, 5)


def test_the_order_does_not_depend_on_the_interleaving() -> None:
    other = (("m", 0, 0, 10), ("m/t1", 0, 11, 12), ("m/t1", 1, 13, 14), ("m/t0", 0, 30, 31), ("m", 1, 70, 80))
    rows = [tape.exchanges[number - 1].request for tape in (tape_of(*FAN), tape_of(*other)) for number in _order(tape)]
    assert [(row.lane, row.n) for row in rows[:5]] == [(row.lane, row.n) for row in rows[5:]]


def _order(tape: Tape) -> list[int]:
    return list(Causality.of(tape).order())


def test_without_lanes_it_is_the_order_of_the_tape() -> None:
    causality = Causality.of(tape_of((None, None, 0, 90), (None, None, 5, 20), (None, None, 30, None)))
    assert causality.order() == (1, 2, 3)
    assert causality.future(1) == {2, 3}
    assert causality.lane(1) == NO_LANE
    assert causality.name(NO_LANE) == "no lane"


def test_what_has_no_lane_may_know_all_that_was_answered() -> None:
    causality = Causality.of(tape_of(("m", 0, 0, 10), (None, None, 20, 30), ("m/t0", 0, 25, 40), ("m/t0", 1, 50, 60)))
    assert causality.future(1) == {2, 3, 4}
    assert causality.future(2) == {4}
    assert causality.concurrent(2, 3)


def test_an_answer_that_never_came_happened_before_nothing_elsewhere() -> None:
    causality = Causality.of(tape_of(("m/t0", 0, 0, None), ("m", 0, 10, 20)))
    assert causality.concurrent(1, 2)


def test_lanes_are_called_by_their_names_where_those_tell_them_apart() -> None:
    lanes = (Lane(t=0, id="m/t0", name="alice"), Lane(t=0, id="m/t1", name="x"), Lane(t=0, id="m/t2", name="x"))
    causality = Causality.of(tape_of(*FAN, lanes=lanes))
    assert [causality.name(lane) for lane in ("m", "m/t0", "m/t1")] == ["m", "alice (m/t0)", "m/t1"]
