"""Symptoms from made-up replays: what is told together, what is shown side by side, and how bad it is."""

from dataclasses import replace
from typing import Any

import pytest
from agentruns import HEAD, exchange

from tapeproxy.proxy.comparing import Run
from tapeproxy.proxy.outputs import Output
from tapeproxy.proxy.replayed import Replayed
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.proxy.symptoms import Symptom, symptoms
from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.explain import Explanation
from tapeproxy.tapes.records import Exit, Note
from tapeproxy.tapes.violations import Drift, Violation

NOTHING = Output(0, "", b"")


def tape(*more: Any) -> Tape:
    records = [HEAD, *exchange(1, "https://a.test/x", chunks=[b"1"]), *more]
    return assemble(Entry(at, b"", 0, record) for at, record in enumerate(records))


def run(number: int, *, out: bytes = b"", code: int = 0, **facts: Any) -> Run:
    outcome = Outcome(code, 1, facts.pop("stopped_by", None))
    replayed = Replayed(exit_code=code, outcome=outcome, served=1, live=0, exchanges=1, taped_ns=1, took_ns=1, **facts)
    stdout = Output(len(out), out.hex(), out)
    return Run(number=number, replayed=replayed, stdout=stdout, stderr=NOTHING, trace="t", course=(), took_ns=1)


def miss(value: str, where: str = "query q") -> Violation:
    found = Explanation("GET", 0, nearest=1, differences=(Difference(where, "taped", value),))
    return Violation("miss", f"GET https://a.test/x?q={value}", "this request is not on the tape", found)


def only(found: list[Symptom]) -> Symptom:
    (symptom,) = found
    return symptom


def test_a_clean_program_has_none() -> None:
    assert symptoms(tape(Exit(t=9, code=0)), [run(1), run(2), run(3)]) == []


@pytest.mark.parametrize(
    ("values", "shown", "hint"),
    [
        (["a", "b", "c"], [("replay 1", "a"), ("replay 2", "b"), ("replay 3", "c")], "another value in each replay"),
        (["a", "a", "a"], [("replays 1, 2, 3", "a")], "the same value in each replay"),
        (["a", "b", "a"], [("replays 1, 3", "a"), ("replay 2", "b")], "another value in each replay"),
    ],
)
def test_a_violation_of_several_replays_is_one_symptom(
    values: list[str], shown: list[tuple[str, str]], hint: str
) -> None:
    found = only(symptoms(tape(), [run(n, violations=[miss(value)]) for n, value in enumerate(values, 1)]))
    assert (found.kind, found.level, found.replays) == ("miss", "error", (1, 2, 3))
    assert found.evidence[0].values == (("tape", "taped"), *shown)
    assert hint in found.hint
    assert found.to_json()["evidence"] == [{"where": "query q", "values": dict(found.evidence[0].values)}]


def test_the_same_parts_in_another_order_are_a_race() -> None:
    told = Explanation("GET", 0, nearest=1, differences=(Difference("query q", "['one', 'two']", "['two', 'one']"),))
    violation = Violation("miss", "GET https://a.test/x", "this request is not on the tape", told)
    assert "another order" in only(symptoms(tape(), [run(n, violations=[violation]) for n in (1, 2)])).hint


def test_two_violations_of_one_replay_are_two_symptoms() -> None:
    runs = [run(n, violations=[miss("a"), miss("b")]) for n in (1, 2)]
    assert [found.replays for found in symptoms(tape(), runs)] == [(1, 2), (1, 2)]


def test_what_went_into_a_difference_is_told_with_it() -> None:
    origins = {
        ("GET https://a.test/x?q=b", "query q"): ["'b' contains the value of os.getpid(), read at agent.py:3 in main"],
        ("GET https://a.test/x?q=b", "query other"): ["another"],
    }
    runs = [run(n, violations=[miss(value)]) for n, value in enumerate("ab", 1)]
    assert only(symptoms(tape(), runs, origins)).origins == tuple(origins["GET https://a.test/x?q=b", "query q"])
    assert only(symptoms(tape(), runs)).origins == ()


def test_a_refused_connection_names_the_line() -> None:
    refused = Violation("egress", "connect at /home/ada/agent.py:7 in main", "the agent tried to reach 1.2.3.4:5")
    found = only(symptoms(tape(), [run(1, violations=[refused])]))
    assert (found.where, "--allow" in found.fix) == ("/home/ada/agent.py:7 in main", True)


def test_drifts_are_told_together_too() -> None:
    drifts = [Drift("GET https://a.test/x", "another position", (Difference("reads", "1", now),)) for now in "23"]
    found = only(symptoms(tape(), [run(n, drifts=[drift]) for n, drift in enumerate(drifts, 1)]))
    assert found.evidence[0].values == (("tape", "1"), ("replay 1", "2"), ("replay 2", "3"))


def test_output_that_differs_between_replays_is_a_symptom() -> None:
    found = only(symptoms(tape(), [run(1, out=b"a\nb\n"), run(2, out=b"a\nc\n"), run(3, out=b"a\nb\n")]))
    assert (found.kind, found.where, found.replays) == ("stdout", "stdout, line 2", (2,))
    assert found.evidence[0].values == (("replay 1", "b"), ("replay 2", "c"))


def test_another_end_than_when_recorded_is_a_symptom() -> None:
    crashed = [replace(run(n, code=3), stderr=Output(9, "", b"Traceback\nError: no\n")) for n in (1, 2)]
    found = only(symptoms(tape(Exit(t=9, code=0)), crashed))
    assert [one.values for one in found.evidence] == [
        (("tape", "exit 0"), ("replays 1, 2", "exit 3")),
        (("replay 1", "Error: no"),),
    ]


def test_a_timeout_is_one_symptom() -> None:
    runs = [run(n, code=-15, stopped_by="timeout") for n in (1, 2)]
    assert [(one.kind, one.replays) for one in symptoms(tape(Exit(t=9, code=0)), runs)] == [("timeout", (1, 2))]


def test_what_is_left_over_and_noted_comes_after_errors() -> None:
    whole = tape(
        Note(t=1, what="bypass", text="a connection to 1.2.3.4:5 did not come through", data={"where": "agent.py:3"}),
        Note(t=2, what="bypass", text="a connection to 1.2.3.4:5 did not come through", data={"where": "agent.py:3"}),
        Note(t=3, what="bypass", text="a look-up", data={"what": "lookup"}),
        Note(t=3, what="process", text="python agent.py"),
    )
    told = run(1, unused=whole.exchanges, notes=["the environment variable X is not what it was"], refusals={"a": "b"})
    found = symptoms(whole, [told])
    assert [(one.kind, one.level) for one in found] == [
        ("bypass", "error"),
        ("certificate", "error"),
        ("unused", "warning"),
        ("note", "note"),
    ]
    assert (found[0].what, found[0].where) == ("a connection to 1.2.3.4:5 did not come through (2 times)", "agent.py:3")
    assert found[2].where == "exchange 1, GET https://a.test/x"


def test_a_tape_with_nothing_on_it_proves_nothing() -> None:
    assert [one.kind for one in symptoms(Tape(HEAD), [replace(run(1), number=1)])] == ["empty"]
