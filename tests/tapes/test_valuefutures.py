"""What comes after a tool's value: exactly those who may know of it, and what a fork with another value does."""

from typing import Any

import pytest

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.editplans import plan_edits
from tapeproxy.tapes.edits import parse_edit
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.forkplan import ForkPlan
from tapeproxy.tapes.lanes import EDGE_RULES
from tapeproxy.tapes.records import Edge, End, Head, Lane, Request, Response, Value
from tapeproxy.tapes.valuefutures import change_value, with_changes


def exchange(number: int, lane: str, n: int) -> Exchange:
    t = 100 * number
    request = Request(t=t, method=b"GET", url=b"http://x.example/", lane=lane, n=n)
    response = Response(t=t + 1, of=number, status=200)
    return Exchange(number, number, request, response, end=End(t=t + 2, of=number, how="complete"))


def call(lane: str, n: int, asked: int, number: int = 0, **fields: Any) -> tuple[int, Value]:
    data = {"call": f"{lane}/k{number}", "args": "{}", "asked": asked, "began": 205, "ended": 210}
    return 9, Value(t=210, lane=lane, n=n, what="tool", name="search", content=b'["a"]', data=data, **fields)


def team(*, worker_asks_on: bool = True) -> Tape:
    """A planner (m) starts two workers; the first one's tool gives something; it joins both, and sums up."""
    places = [
        (1, "m", 0),
        (2, "m/t0", 0),
        (3, "m/t1", 0),
        (4, "m/t0/k0", 0),
        (5, "m/t0", 1),
        (6, "m/t1", 1),
        (7, "m", 1),
    ]
    kept = [place for place in places if worker_asks_on or place[1:] != ("m/t0", 1)]
    exchanges = [exchange(number, lane, n) for number, (_, lane, n) in enumerate(kept, 1)]
    lanes = [Lane(t=0, id="m")]
    lanes += [Lane(t=0, id=f"m/t{k}", name=f"worker_{k}", origin=("m", 1, k)) for k in (0, 1)]
    lanes += [Lane(t=0, id="m/t0/k0", origin=("m/t0", 1, 0))]
    edges = [Edge(t=0, what="join", on=f"m/t{k}", lane="m", asked=1, n=2 + k) for k in (0, 1)]
    head = Head(started_at="2026-01-01T00:00:00Z", seed="ab" * 32, rules={"edges": EDGE_RULES})
    return Tape(head, exchanges, lanes=lanes, edges=edges, values=[call("m/t0", 0, 1)])


def planned(tape: Tape, *edits: str, at: int | None = None) -> ForkPlan:
    return plan_edits(tape, Causality.of(tape), [parse_edit(edit) for edit in edits], at).plan


def test_only_who_may_know_of_the_value_runs_live() -> None:
    plan = planned(team(), 'value m/t0#0=["b"]')
    assert plan.live == {5, 7}
    assert plan.served == {1, 2, 3, 4, 6}
    assert plan.branch == ()
    assert "m/t1" not in plan.cut
    assert (plan.cut["m/t0"].requests, plan.cut["m"].requests) == (1, 1)
    ((place, value),) = plan.values.items()
    assert place == ("m/t0", 0)
    assert (value.content, value.error, value.data["edited"]) == (b'["b"]', None, True)


def test_a_lane_that_asks_nothing_more_tells_who_joins_it() -> None:
    tape = team(worker_asks_on=False)
    plan = planned(tape, "value worker_0#0=1")
    assert [(one.request.lane, one.request.n) for one in tape.exchanges if one.number in plan.live] == [("m", 1)]
    assert plan.cut["m/t0"].requests == 1


def test_with_another_edit_both_futures_run() -> None:
    plan = planned(team(), "value m/t0#0=1", "3:status 500")
    assert plan.live == {5, 6, 7}
    assert plan.mutated.keys() == {3}


def test_what_a_call_raised_becomes_a_result() -> None:
    tape = team()
    index, value = tape.values[0]
    raised = {**value.data, "end": "raised"}
    tape.values = [(index, Value(t=1, lane="m/t0", n=0, what="tool", name="s", error="ValueError", data=raised))]
    changed = change_value(tape, "m/t0", 0, b"1").value
    assert changed.error is None
    assert "end" not in changed.data


def test_the_tape_that_the_shims_get() -> None:
    """Contents by digest stay with those who have them, and an old edit is none of this fork's."""
    tape = team()
    old = Value(t=1, lane="m/t1", n=0, what="tool", name="x", digest="d", content=b"1", data={"edited": True})
    same = Value(t=2, lane="m/t1", n=1, what="tool", name="x", digest="d")
    tape.values = [*tape.values, (10, old), (11, same)]
    new = change_value(tape, "m/t1", 0, b"2").value
    assert [value.content for _, value in with_changes(tape, {("m/t1", 0): new}).values] == [b'["a"]', b"2", b"1"]
    other = change_value(tape, "m/t0", 0, b"2").value
    told = [value for _, value in with_changes(tape, {("m/t0", 0): other}).values]
    assert ["edited" in value.data for value in told] == [True, False, False]
    assert with_changes(tape, {}) is tape


@pytest.mark.parametrize(
    ("edit", "at", "said"),
    [
        ("value m/t0#1=1", None, "lane m/t0 has no value 1 of a tool\n  there are m/t0#0 (search)"),
        ("value m/t1#0=1", None, "value 0 of lane m/t1 is no tool's: it is of the kind 'file'"),
        ("value nobody#0=1", None, "there is no lane 'nobody'"),
        ("value m/t0#0=1", 0, "leave out --at 0"),
    ],
)
def test_a_value_that_is_not_there(edit: str, at: int | None, said: str) -> None:
    tape = team()
    tape.values.append((10, Value(t=1, lane="m/t1", n=0, what="file", name="x")))
    with pytest.raises(UsageError) as caught:
        planned(tape, edit, at=at)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("edits", "at"),
    [(["text New"], 4), ([], 4), (["set 1:$.a=1", "set 4:$.a=1"], None)],
)
def test_what_a_tool_s_body_asked_cannot_be_changed(edits: list[str], at: int | None) -> None:
    tape = team()
    with pytest.raises(UsageError, match=r"exchange 4 .* search\(\)") as raised:
        plan_edits(tape, Causality.of(tape), [parse_edit(line) for line in edits], at)
    assert "--value 'm/t0#0=JSON'" in str(raised.value)
