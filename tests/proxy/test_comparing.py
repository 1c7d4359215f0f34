"""When replays count as identical, and what is said of the first that does not."""

from dataclasses import replace
from typing import Any

import pytest
from blake3 import blake3

from tapeproxy.proxy.comparing import Run, first_difference, identical
from tapeproxy.proxy.outputs import Output
from tapeproxy.proxy.replayed import Replayed
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.violations import Drift, Violation

VIOLATION = Violation("miss", "GET http://x.test/", "this request is not on the tape")
DRIFT = Drift("lane m", "lane m reads the clock more often than on the tape")


def output(text: bytes, *, beyond: bytes = b"") -> Output:
    """An output of which `beyond` was not kept."""
    whole = text + beyond
    return Output(len(whole), blake3(whole).hexdigest(), text)


def outcome(code: int = 0, stopped_by: Any = None) -> Outcome:
    return Outcome(code, 1, stopped_by)


def run(number: int = 1, **fields: Any) -> Run:
    """A clean run; `fields` of the run or of its Replayed."""
    replayed = Replayed(0, outcome(), served=1, live=0, exchanges=1, taped_ns=1, took_ns=1)
    of_replayed = {name: fields.pop(name) for name in ("outcome", "violations", "drifts") if name in fields}
    one = Run(
        number=number,
        replayed=replace(replayed, **of_replayed),
        stdout=output(b"one\ntwo\n"),
        stderr=output(b""),
        trace="aa",
        course=(Step(1, None, Ask(b"GET", b"http://x.test/", (), b"")),),
        took_ns=1,
    )
    return replace(one, **fields)


def test_nothing_to_compare() -> None:
    assert first_difference([]) is None
    assert first_difference([run()]) is None
    assert identical([]) == 0


def test_identical_ones() -> None:
    runs = [run(n, took_ns=n) for n in (1, 2, 3)]
    assert (identical(runs), first_difference(runs)) == (3, None)


OTHER_STEP = (Step(1, None, Ask(b"GET", b"http://x.test/", ((b"a", b"1"),), b"")),)
TABLE: dict[str, tuple[dict[str, Any], str, str, list[tuple[str, str | None, str | None]]]] = {
    "a line": (
        {"stdout": output(b"one\nTWO\n")},
        "stdout",
        "stdout differs at line 2",
        [("stdout, line 2", "two", "TWO")],
    ),
    "a line less": (
        {"stdout": output(b"one\n")},
        "stdout",
        "stdout differs at line 2",
        [("stdout, line 2", "two", None)],
    ),
    "an end of line": (
        {"stdout": output(b"one\ntwo")},
        "stdout",
        "stdout differs at line 2",
        [("stdout, line 2", "two\n", "two")],
    ),
    "not UTF-8": (
        {"stderr": output(b"\xff\x00")},
        "stderr",
        "stderr differs at line 1",
        [("stderr, line 1", None, "\\xff\x00")],
    ),
    "a code": (
        {"outcome": outcome(3)},
        "exit",
        "the agent ended otherwise",
        [("exit", "exit 0", "exit 3")],
    ),
    "a signal": (
        {"outcome": outcome(-11), "stderr": output(b"x")},
        "stderr",
        "stderr differs at line 1",
        [("stderr, line 1", None, "x"), ("exit", "exit 0", "killed by SIGSEGV")],
    ),
    "a header": (
        {"course": OTHER_STEP, "stdout": output(b"")},
        "request",
        "request 1 without a lane, exchange 1, was sent otherwise",
        [("header a", None, "1")],
    ),
    "answers": ({"trace": "bb"}, "answers", "other answers were given", [("trace hash", "aa", "bb")]),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_differs(case: str) -> None:
    fields, what, text, places = TABLE[case]
    runs = [run(1), run(2), run(3, **fields), run(4, violations=[VIOLATION])]
    found = first_difference(runs)
    assert found is not None
    assert (found.number, found.what, found.text, identical(runs)) == (3, what, text, 2)
    assert [(place.where, place.taped, place.asked) for place in found.differences] == places
    assert found.to_json()["differences"][0].keys() == {"where", "first", "this"}


def test_what_else_differs_is_named() -> None:
    found = first_difference([run(1), run(2, stdout=output(b""), stderr=output(b"x"), outcome=outcome(1))])
    assert found is not None
    assert (found.what, found.also) == ("stdout", ("stderr", "exit"))


@pytest.mark.parametrize("first_too", [False, True])
@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"violations": [VIOLATION], "drifts": [DRIFT]}, "violation"),
        ({"drifts": [DRIFT]}, "drift"),
        ({"outcome": outcome(-15, "timeout")}, "timeout"),
    ],
)
def test_a_fault_counts_even_when_all_have_it(fields: dict[str, Any], what: str, first_too: bool) -> None:
    runs = [run(1, **(fields if first_too else {})), run(2, **fields)]
    found = first_difference(runs)
    assert found is not None
    assert (found.number, found.what, identical(runs)) == (1 if first_too else 2, what, 0 if first_too else 1)
    assert (found.to_json()["fault"] is None) == (what == "timeout")


def test_a_drift_that_is_only_reported_does_not_count() -> None:
    assert first_difference([run(n, drifts=[DRIFT], drift_counts=False) for n in (1, 2)]) is None


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (output(b"a\n" * 9, beyond=b"b"), output(b"a\n" * 9, beyond=b"c"), "after its first 18 bytes"),
        (output(b"a\n", beyond=b"b"), output(b"", beyond=b"a\nc"), "after its first 0 bytes"),
        (output(b"a\n" * 9, beyond=b"b"), output(b"a\n" * 8 + b"x\n", beyond=b"b"), "at line 9"),
        (output(b"a\n" * 9, beyond=b"b"), output(b"a\n" * 9), "after its first 18 bytes"),
        (output(b"a\n" * 9, beyond=b"b"), output(b"a\n" * 3), "at line 4"),
    ],
)
def test_outputs_of_which_only_the_beginning_was_kept(one: Output, other: Output, what: str) -> None:
    for first, second in ((one, other), (other, one)):
        found = first_difference([run(1, stdout=first), run(2, stdout=second)])
        assert found is not None
        assert found.text.startswith(f"stdout differs {what}")
