"""The events that a search goes through, on tapes made in memory."""

import json
from dataclasses import replace

import agentruns
import difftapes
from difftapes import get

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.cuts import Cut
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.lanes import EDGE_RULES
from tapeproxy.tapes.records import Edge, Lane, Record, Value
from tapeproxy.tapes.stepevents import StepEvent, first_of, step_events

HEAD = replace(agentruns.HEAD, rules={"edges": EDGE_RULES})


def call(lane: str, number: int, asked: int, met: int) -> list[Record]:
    """A call of a tool and the meeting with its body."""
    body = f"{lane}/k{number}"
    data = {"call": body, "args": json.dumps({"n": number}), "asked": asked}
    return [
        Value(t=1, lane=lane, n=number, what="tool", name="step", content=b"1", data=data),
        Edge(t=1, what="call", on=body, lane=lane, n=met, asked=asked),
    ]


def tape(*values: Record) -> Tape:
    """m asks once, then a worker asks twice, and m, which has joined it, once more. Exchanges 3 and 4 are m's last and
    that of a tool's body."""
    asks = [get("m", "a"), get("m/t0", "b"), get("m/t0", "c"), get("m", "d"), get("m/k1", "body")]
    lanes: list[Record] = [Lane(t=0, id="m/t0", what="thread", name="worker", origin=("m", 1, 0))]
    join = Edge(t=1, what="join", on="m/t0", lane="m", n=1, asked=1, at=(2, 1))
    return difftapes.read([*difftapes.records(asks, first=lanes), join, *values], HEAD)


def names(events: list[StepEvent]) -> list[int | str]:
    return [one if isinstance(one, int) else f"{one.lane}#{one.value.n}" for one in events]


TAPE = tape(
    *call("m", 0, 1, 0),  # before the join
    *call("m", 1, 1, 2),  # its body asked exchange 5
    *call("m", 2, 2, 3),
    *call("m/t0", 0, 1, 0),
    *call("m/k2", 0, 0, 0),  # within the body of another one
    *call("?m/e0", 0, 0, 0),
)


def test_calls_stand_between_what_they_knew_and_what_knew_of_them() -> None:
    assert names(step_events(TAPE, Causality.of(TAPE))) == [1, 5, 2, "m/t0#0", 3, "m#0", 4, "m#2"]


def test_a_lane_leaves_the_tape_before_the_first_call_that_is_made_anew() -> None:
    causality = Causality.of(TAPE)
    events = step_events(TAPE, causality)
    plans = [first_of(TAPE, causality, events, k) for k in range(len(events) + 1)]
    assert plans[8].cut == {} and plans[8].served == {1, 2, 3, 4, 5}
    assert plans[7].cut["m"] == Cut(2, 0, 3) and plans[7].served == {1, 2, 3, 4, 5}
    assert plans[7].cut["m/k2"] == Cut(0, 0, 0) and plans[7].stays == {"m/t0"}
    assert "m/t0" not in plans[7].cut and plans[3].stays == frozenset()
    assert plans[5].cut["m"] == Cut(1, 0, 0) and plans[5].served == {1, 5, 2, 3}
    assert plans[3].cut["m/t0"] == Cut(1, 0, 0) and plans[3].cut["m"].requests == 1
    assert plans[0].cut["m"].meetings == 0 and plans[0].served == frozenset()


def test_without_calls_the_events_are_the_exchanges() -> None:
    plain = tape()
    assert step_events(plain, Causality.of(plain)) == list(Causality.of(plain).order())
