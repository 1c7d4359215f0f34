"""Hints of two runs side by side, in memory."""

import json
from collections.abc import Sequence
from dataclasses import replace

import agentruns
import difftapes
import pytest
from difftapes import get

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hintdiffs import HintDiff, rows
from tapeproxy.tapes.records import Value
from tapeproxy.tapes.tapediff import diff_tapes, only_lane

HEAD = replace(agentruns.HEAD, seed="ab" * 32)


def told(lane: str, n: int, name: str, gave: object, *, what: str = "tool", **more: object) -> Value:
    """A call of a tool with the argument `n`; `error` and `args` may be given."""
    data = {"call": f"{lane}/k{n}", "args": json.dumps(more.pop("args", {"n": n})), "asked": 0}
    error = str(more.pop("error")) if "error" in more else None
    return Value(
        t=1, lane=lane, n=n, what=what, name=name, data=data | more, error=error, content=json.dumps(gave).encode()
    )


def said(lane: str, n: int, to: str, gave: object) -> Value:
    return told(lane, n, to, gave, what="message", args="")


def tape(*values: Value) -> Tape:
    return difftapes.read([*difftapes.records([get("m", "a")]), *values], HEAD)


def found(ours: Sequence[Value], theirs: Sequence[Value]) -> list[tuple[str, list[tuple[str, str | None, str | None]]]]:
    diff = diff_tapes(tape(*ours), tape(*theirs))
    assert diff.same is not bool(diff.hints) and diff.branch is None
    return [
        (f"{one.kind} {one.label}", [(at.where, at.taped, at.asked) for at in one.differences]) for one in diff.hints
    ]


STEPS = [told("m", n, "step", {"v": n}) for n in range(3)]


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (STEPS, []),
        ([STEPS[0], told("m", 1, "step", {"v": 7}), STEPS[2]], [("changed m#1 step(n=1)", [("$.v", "1", "7")])]),
        (STEPS[:2], [("missing m#2 step(n=2)", [])]),
        ([*STEPS, told("m", 3, "other", 1)], [("extra m#3 other(n=3)", [])]),
        (
            [STEPS[0], told("m", 1, "step", {"v": 1}, args={"n": 9}), STEPS[2]],
            [("changed m#1 step(n=1)", [("argument $.n", "1", "9")])],
        ),
        (
            [STEPS[0], told("m", 1, "step", {"v": 1}, error="ValueError"), STEPS[2]],
            [("changed m#1 step(n=1)", [("raised", None, "ValueError")])],
        ),
        (
            [told("m", 0, "new", 1), *(replace(step, n=step.n + 1) for step in STEPS)],
            [("extra m#0 new(n=0)", [])],
        ),
        (
            [STEPS[1], STEPS[0], STEPS[2]],
            [],  # a number in the lane is its order, not that of the records
        ),
        (
            [replace(STEPS[1], n=0), replace(STEPS[0], n=1), STEPS[2]],
            [("moved m#0 / m#1 step(n=0)", [])],
        ),
        # A replay runs no body, so what was called within one is on one tape alone.
        ([*STEPS, told("m/k1", 0, "inner", 1)], []),
        ([*STEPS, told("m/t0", 0, "step", 1)], [("extra m/t0#0 step(n=0)", [])]),
    ],
)
def test_calls(theirs: Sequence[Value], expected: list[tuple[str, list[tuple[str, str | None, str | None]]]]) -> None:
    assert found(STEPS, theirs) == expected


def test_messages_and_values_count_too() -> None:
    ours = [said("m", 0, "bob", "hello"), told("m", 1, "now", 1, what="hint")]
    theirs = [said("m", 0, "bob", "good bye"), told("m", 1, "now", 2, what="hint")]
    assert [one for one, _ in found(ours, theirs)] == ["changed m#0 message to bob", "changed m#1 value now"]


def test_lanes_whose_names_are_chance_are_one() -> None:
    ours = [told("?m/e0", 0, "step", 1), told("?m/e1", 0, "step", 2)]
    theirs = [told("?m/e7", 0, "step", 2), told("?m/e8", 0, "step", 1)]
    assert found(ours, theirs) == []


def test_a_tape_that_cannot_tell_says_nothing() -> None:
    plain = difftapes.run(get("m", "a"))
    assert diff_tapes(plain, tape(*STEPS)).same
    assert [one.kind for one in diff_tapes(tape(), tape(*STEPS)).hints] == ["extra"] * 3


def test_of_one_lane() -> None:
    other = [told("m", 1, "step", 7), told("m/t0", 0, "step", 1)]
    assert [one.label for one in only_lane(diff_tapes(tape(*STEPS[1:2]), tape(*other)), "m").hints] == ["m#1 step(n=1)"]


def test_as_places() -> None:
    (changed,) = diff_tapes(tape(*STEPS), tape(*STEPS[:2], told("m", 2, "step", {"v": 7}))).hints
    gone = HintDiff("missing", ("m", 3), None, "tool", "step(n=3)")
    assert [(one.where, one.taped, one.asked) for one in rows([changed, gone])] == [
        ("m#2 step(n=2), $.v", "2", "7"),
        ("m#3 step(n=3)", "(told)", None),
    ]
