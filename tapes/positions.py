"""Where in its lane a request was made, on the tape and in a replay. Knows which differences count, not what lanes are.

A loop that polls with sleep until something outside has come may go another number of rounds. So what a lane does
between its first sleep and its next request is *soft*: a difference there is worth a note, and the values that the
request sends decide. From the request on, positions are hard again.
"""

from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.records import Head, Request

if TYPE_CHECKING:
    from tapeproxy.tapes.differences import Difference

CLOCK_RULES = 2
"""How the clock is taped (`rules.clock` in the head): 2, with sleeps; tapes that don't say know nothing of sleeps."""
WITHIN_RULES = 1
"""How an interpreter that lives on was taped from within (`rules.within` in the head); others don't say."""


def is_within(head: Head) -> bool:
    """Whether the tape was recorded within an interpreter: its lanes and clocks are only to be had there again."""
    return head.rules.get("within") is not None


def knows_sleeps(head: Head) -> bool:
    """Whether the tape says when lanes slept."""
    return head.rules.get("clock") == CLOCK_RULES


class Position(NamedTuple):
    """The differences between two positions: those that count as a drift, and those that a poll explains."""

    hard: "tuple[Difference, ...]"
    soft: "tuple[Difference, ...]"


def compare_positions(taped: Request, tag: LaneTag, *, sleeps: bool) -> Position:
    """Compare where a request was made. `sleeps`: the tape says when lanes slept; else every difference is hard."""
    hard: list[Difference] = []
    soft: list[Difference] = []
    if taped.n is not None:
        hard += _differ("number in its lane", taped.n, tag.n)
    reads = [] if taped.reads is None else _differ("clock reads before it", taped.reads, tag.reads)
    if not sleeps or not (taped.sleeps or tag.sleeps):
        return Position((*hard, *reads), ())
    if taped.sleeps != tag.sleeps:
        soft += _differ("sleeps before it", taped.sleeps, tag.sleeps)
    elif taped.awake is not None and tag.awake is not None:
        hard += _differ("clock reads before the first sleep", taped.awake, tag.awake)
    return Position(tuple(hard), (*soft, *reads))


def _differ(where: str, taped: int, now: int) -> "list[Difference]":
    if taped == now:
        return []
    from tapeproxy.tapes.differences import Difference

    return [Difference(where, str(taped), str(now))]
