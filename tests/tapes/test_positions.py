"""Which differences of a position count, and which a poll explains."""

import pytest

from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.positions import compare_positions, knows_sleeps
from tapeproxy.tapes.records import Head, Request

READS, FIRST, SLEEPS, NUMBER = (
    "clock reads before it",
    "clock reads before the first sleep",
    "sleeps before it",
    "number in its lane",
)


def taped(n: int, reads: int, sleeps: int = 0, awake: int | None = None) -> Request:
    return Request(t=0, method=b"GET", url=b"http://x/", lane="m", n=n, reads=reads, sleeps=sleeps, awake=awake)


@pytest.mark.parametrize(
    ("was", "now", "hard", "soft"),
    [
        ((0, 5), (0, 5), [], []),
        ((0, 5), (0, 6), [READS], []),
        ((0, 5), (1, 5), [NUMBER], []),
        ((0, 9, 3, 2), (0, 9, 3, 2), [], []),
        ((0, 9, 3, 2), (0, 7, 1, 2), [], [SLEEPS, READS]),
        ((0, 9, 3, 2), (0, 6), [], [SLEEPS, READS]),
        ((0, 6), (0, 9, 3, 2), [], [SLEEPS, READS]),
        ((0, 9, 3, 2), (0, 9, 1, 2), [], [SLEEPS]),
        ((0, 9, 3, 2), (0, 10, 3, 2), [], [READS]),
        ((0, 9, 3, 2), (0, 10, 3, 3), [FIRST], [READS]),
        ((0, 9, 3, 2), (1, 7, 1, 2), [NUMBER], [SLEEPS, READS]),
    ],
)
def test_a_poll_is_forgiven_and_nothing_else(
    was: tuple[int, ...], now: tuple[int, ...], hard: list[str], soft: list[str]
) -> None:
    found = compare_positions(taped(*was), LaneTag("m", *now), sleeps=True)
    assert [difference.where for difference in found.hard] == hard
    assert [difference.where for difference in found.soft] == soft


def test_an_old_tape_knows_nothing_of_sleeps_and_is_strict() -> None:
    found = compare_positions(taped(0, 5), LaneTag("m", 0, 6, 3, 2), sleeps=False)
    assert ([difference.where for difference in found.hard], found.soft) == ([READS], ())
    assert not knows_sleeps(Head(rules={"matching": 1}))
    assert knows_sleeps(Head(rules={"clock": 2}))
