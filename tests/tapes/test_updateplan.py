"""What an update serves, what it may ask, and how lanes leave the tape while it runs."""

from dataclasses import replace

import pytest
from served import exchange, tape_of

from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.forkplan import kept
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.updateplan import update_of


def one(lane: str | None, n: int | None = None, *, ended: bool = True, inside: bool = False) -> Exchange:
    found = exchange(f"https://api.example.com/{lane}/{n}", b"ok")
    found.request = replace(found.request, lane=lane, n=n, reads=0, inside=inside)
    found.end = found.end if ended else None
    return found


def tape() -> Tape:
    return tape_of([one("m", 0), one("m", 1, inside=True), one("m/t0", 0), one("m", 2, ended=False)])


def test_all_that_the_tape_knows_the_end_of_is_served() -> None:
    plan = update_of(tape())
    assert plan.served == {1, 3}
    assert [found.number for found in kept(tape(), plan).exchanges] == [1, 2, 3]  # a server of the run answers itself
    assert plan.lanes == {"m", "m/t0"}


def test_whatever_is_not_on_the_tape_may_go_out_unless_nothing_may() -> None:
    for tag in (None, LaneTag("m", 0, 0), LaneTag("m/t9", 3, 0), LaneTag("?m/t0", 0, 0)):
        assert update_of(tape()).may_be_live(tag)
        assert not update_of(tape(), offline=True).may_be_live(tag)


def test_a_lane_leaves_once_and_the_first_time_counts() -> None:
    plan = update_of(tape())
    assert plan.leave("m", 1)
    assert not plan.leave("m", 1)
    assert not plan.leave("m", 5)
    assert plan.leave("m", -1)
    assert plan.left == {"m": -1}


@pytest.mark.parametrize(
    ("tag", "past", "anew"),
    [
        (LaneTag("m", 0, 0), True, False),
        (LaneTag("m", 1, 0), False, True),
        (LaneTag("m", 2, 0), False, True),
        (LaneTag("m/t0", 0, 0), True, False),
        (LaneTag("m/t9", 0, 0), False, False),
        (None, False, True),
    ],
)
def test_what_is_compared_with_the_tape_and_what_is_not_looked_for_on_it(
    tag: LaneTag | None, past: bool, anew: bool
) -> None:
    changed, future = update_of(tape()), update_of(tape(), rerun="future")
    assert not future.asks_anew(None)
    for plan in (changed, future):
        plan.leave("m", 1)
        assert plan.is_past(tag) is past
    assert not changed.asks_anew(tag)
    assert future.asks_anew(tag) is anew
