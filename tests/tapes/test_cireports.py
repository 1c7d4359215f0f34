"""Reports read as entries: those of ours, and whatever else a file may hold."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.cireports import Entry, Told, read_report, reason_of, worst
from tapeproxy.tapes.usage import Usage

MISS = {
    "kind": "miss",
    "request": "GET https://a.test/two",
    "what": "this request is not on the tape",
    "nearest": {
        "exchange": 1,
        "score": 0.972,
        "why": "it differs in 1 place",
        "differences": [
            {
                "where": "query id",
                "taped": "1",
                "asked": None,
                "words": "",
                "kind": "counter",
                "rule": "ignore-query id",
            }
        ],
    },
}
MISS_TEXT = """this request is not on the tape
  request: GET https://a.test/two
  nearest: exchange 1, 97% alike; not taken, because it differs in 1 place
    query id
      tape: 1
      now:  (absent)
      both look like a counter; if it is noise: --ignore-query id"""
DRIFT = {"request": "GET http://a.test/", "what": "lane m came another way", "differences": []}
USAGE = {"model": "gpt", "calls": 1, "tokens_in": 2, "tokens_out": 3, "uncounted": 0}
REPLAY: dict[str, Any] = {
    "tape": "a.tape.jsonl.gz",
    "exit_code": 0,
    "agent_exit_code": 0,
    "stopped_by": None,
    "exchanges": 2,
    "served": 2,
    "taped_ns": 9,
    "took_ns": 1,
    "usage": [USAGE],
    "violations": [],
    "drifts": [],
    "unused": [],
}
TEST: dict[str, Any] = {
    "test": "tests/test_a.py::test_b",
    "tape": "tests/tapes/test_a/test_b.tape.jsonl.gz",
    "outcome": "passed",
    "violations": [],
    "answered": [1, 2],
    "exchanges": 3,
    "waited_ns": 9,
    "took_ns": 1,
    "usage": [USAGE],
}


def only(document: dict[str, Any]) -> Entry:
    (entry,) = read_report(document, "report.json")
    return entry


def test_a_replay() -> None:
    entry = only(REPLAY)
    assert (entry.name, entry.code, entry.why) == ("a.tape.jsonl.gz", 0, "")
    assert (entry.answered, entry.exchanges, entry.waited_ns, entry.took_ns) == (2, 2, 9, 1)
    assert entry.usage == (Usage("gpt", 1, 2, 3, 0),) and entry.told == ()
    old = {name: value for name, value in REPLAY.items() if name not in ("tape", "usage")}
    assert only(old).name == "report.json"  # a report of an older version


@pytest.mark.parametrize(
    ("changed", "why", "told"),
    [
        ({"exit_code": 1}, "exit 1", []),
        ({"exit_code": 4, "unused": [2]}, "1 exchanges not asked for", []),
        ({"exit_code": 124, "stopped_by": "timeout"}, "stopped: timeout", []),
        ({"exit_code": 3, "violations": [MISS]}, "1 violation", [MISS_TEXT]),
        (
            {"exit_code": 3, "violations": [MISS, MISS], "drifts": [DRIFT]},
            "2 violations, 1 drift",
            [MISS_TEXT, MISS_TEXT, "lane m came another way\n  request: GET http://a.test/"],
        ),
    ],
)
def test_replays_that_went_wrong(changed: dict[str, Any], why: str, told: list[str]) -> None:
    entry = only(REPLAY | changed)
    assert (entry.code, entry.why) == (changed["exit_code"], why)
    assert [one.text for one in entry.told] == told


def test_a_verified_tape_and_its_replays() -> None:
    runs = [{"number": number, "report": REPLAY} for number in (1, 2)]
    difference = {"replay": 2, "what": "stdout", "text": "they print another thing", "differences": []}
    document = {"tape": "a", "finding": "intact", "good": True, "what": "", "runs": runs, "difference": difference}
    entries = read_report(document, "report.json")
    assert [(one.name, one.code, one.why) for one in entries] == [
        ("a (verified)", 0, ""),
        ("a (replay 1)", 0, ""),
        ("a (replay 2)", 4, "another stdout than in replay 1"),
    ]
    assert entries[2].told == (Told("difference", "they print another thing"),)
    damaged = {"tape": "a", "finding": "damaged", "good": False, "what": "line 3"}
    assert (only(damaged).code, only(damaged).told) == (5, (Told("tape", "damaged: line 3"),))


def test_what_the_recorder_could_not_tape_is_the_why_of_what_passed_too() -> None:
    gap = "the tape has a gap: 1 times something could not be taped; first: boom"
    (replay,) = read_report(REPLAY | {"notes": ["soft divergence", gap]}, "r.json")
    (verified,) = read_report({"tape": "t", "finding": "intact", "good": True, "what": "w", "gaps": [gap]}, "v.json")
    assert [(one.code, one.why) for one in (replay, verified)] == [(0, gap)] * 2


def test_tests() -> None:
    failed = TEST | {"outcome": "failed", "longrepr": "def x():\n>  a\nE   KeyError: 1\n", "kept": ["k.tape.jsonl.gz"]}
    program = REPLAY | {"exit_code": 3, "violations": [MISS]}
    entries = read_report(
        {
            "tests": [
                TEST,
                failed,
                failed | {"violations": [MISS]},
                failed | {"programs": [REPLAY, program]},
                TEST | {"outcome": "skipped"},
                TEST | {"programs": [REPLAY | {"exit_code": 1}]},
            ]
        },
        "",
    )
    assert [(one.code, one.why) for one in entries] == [
        (0, ""),
        (1, "KeyError: 1"),
        (3, "1 violation"),
        (1, "1 violation"),
        (0, "skipped"),
        (0, ""),
    ]
    assert entries[0].file == "tests/test_a.py" and entries[1].kept == ("k.tape.jsonl.gz",)
    assert [one.text for one in entries[3].told] == [MISS_TEXT]
    assert (entries[3].answered, entries[3].exchanges, len(entries[3].usage)) == (6, 7, 3)
    left = {name: value for name, value in failed.items() if name != "outcome"}  # a file of .tapes/failures
    assert (only(left).code, only(left).why) == (1, "KeyError: 1")


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ([], "no JSON object"),
        ({}, "neither of replay"),
        ({"exit_code": "0", "violations": []}, "exit_code is no whole number"),
        ({"exit_code": True, "violations": []}, "exit_code is no whole number"),
        (REPLAY | {"violations": {}}, "violations is no list"),
        (REPLAY | {"violations": ["x"]}, "violations[0] is no JSON object"),
        (REPLAY | {"usage": [{"model": 3}]}, "model is no text"),
        ({"tests": [TEST, 3]}, "tests[1] is no JSON object"),
        ({"finding": "intact", "good": True, "runs": [{"number": 1}]}, "report is no JSON object"),
    ],
)
def test_what_is_no_report(document: object, what: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_report(document, "x.json")
    assert what in str(caught.value)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one))
FIELDS = st.dictionaries(st.sampled_from([*REPLAY, *TEST, "tests", "finding", "good", "runs", "longrepr"]), JSON)


@given(st.sampled_from([REPLAY, TEST | {"longrepr": ""}, {}]), FIELDS)
def test_any_json_is_a_report_or_a_named_error(base: dict[str, Any], fields: dict[str, Any]) -> None:
    try:
        entries = read_report(base | fields, "x.json")
    except ValueError as error:
        assert str(error)
    else:
        json.dumps([entry.to_json() for entry in entries])


@pytest.mark.parametrize(
    ("codes", "one"), [([], 0), ([0, 1], 1), ([1, 4, 3], 3), ([124, 4], 4), ([7, 2], 7), ([5, 1], 5)]
)
def test_the_worst(codes: list[int], one: int) -> None:
    assert worst(codes) == one


def test_reasons() -> None:
    assert reason_of("") == "" and reason_of("a\nE  b\nE c") == "b" and reason_of("\n x\ny") == "x"
