"""What hints put on a tape: which lanes are those of calls, what they asked, and how two of a kind differ."""

from typing import Any

import pytest
from agentruns import exchange

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.hints import (
    Bodies,
    Call,
    absent_lanes,
    call_title,
    calls,
    conclusions,
    form_differences,
    hinted,
    position_differences,
)
from tapeproxy.tapes.records import Head, Note, Record, Value
from tapeproxy.tapes.tokens import make_token


def call(lane: str, k: int, n: int = 0, **data: Any) -> Value:
    facts = {"call": f"{lane}/k{k}", "args": '{"query":"tides"}', "asked": 0} | data
    return Value(t=1, lane=lane, n=n, what="tool", name="search", content=b"[1]", data=facts)


def tape(*records: Record) -> Tape:
    return assemble(Entry(index, bytes(32), 0, record) for index, record in enumerate((Head(), *records)))


ASKED = ("m", "m/k0", "m/k0/t0", "m/k0/k1", "m/k1", "m/k10", "m/t0/k0/a3", None)


def laned() -> Tape:
    records: list[Record] = []
    for lane in ASKED:
        records += exchange(len(records) + 1, "http://a.test/", lane=lane)
    return tape(*records, call("m", 0), call("m/k0", 1), call("m", 1, 1), call("m/t0", 0))


def test_exchanges_belong_to_the_outermost_call_whose_body_asked() -> None:
    assert Bodies(laned()).exchanges(laned()) == {"m/k0": [2, 3, 4], "m/k1": [5], "m/t0/k0": [7]}


def test_lanes_within_calls_are_absent_where_bodies_do_not_run() -> None:
    absent = absent_lanes(laned())
    assert [lane for lane in ASKED if absent(lane)] == ["m/k0", "m/k0/t0", "m/k0/k1", "m/k1", "m/t0/k0/a3"]
    assert not any(map(absent_lanes(tape(*exchange(1, "http://a.test/", lane="m/k0"))), ASKED))


@pytest.mark.parametrize(
    "records, used",
    [
        ([], False),
        ([Note(t=1, what="hints")], True),
        ([call("m", 0)], True),
        ([Value(t=1, lane="m", n=0, what="file", name="a")], False),
        ([Value(t=1, lane="m", n=0, what="final", name="final")], True),
    ],
)
def test_a_tape_with_hints_is_known(records: list[Record], used: bool) -> None:
    assert hinted(tape(*records)) is used


def test_calls_and_conclusions_are_found() -> None:
    final = [Value(t=1, lane=lane, n=n, what="final", name="final") for lane, n in (("m/t0", 1), ("m", 7), ("m", 2))]
    of = tape(call("m", 0), *final, Value(t=1, lane="m", n=1, what="hint", name="now", data={"call": "m/k1"}))
    assert [(one.lane, one.arguments, one.asked) for one in calls(of)] == [
        ("m/k0", '{"query":"tides"}', 0),
        ("m/k1", "", -1),
    ]
    assert [(value.lane, value.n) for value in conclusions(of)] == [("m", 2), ("m", 7), ("m/t0", 1)]


@pytest.mark.parametrize(
    "what, arguments, title",
    [
        ("tool", '{"a":1,"*more":["é"]}', 'search(a=1, *more=["é"])'),
        ("tool", "{", "search(…)"),
        ("tool", "[1]", "search(…)"),
        ("hint", "{}", "value search"),
    ],
)
def test_a_call_in_a_line(what: str, arguments: str, title: str) -> None:
    assert call_title(what, "search", arguments) == title


TOKEN, OTHER = (make_token(bytes(32), secret).decode() for secret in (b"sk-one-1234567890", b"another-secret"))


@pytest.mark.parametrize(
    "taped, now, found",
    [
        ('{"a":[1,2]}', '{"a": [1, 2]}', []),
        ('{"a":[1,2]}', '{"a":[1,3],"b":null}', [("$.a[1]", "2", "3"), ("$.b", None, "null")]),
        (f'{{"key":"{TOKEN}"}}', f'{{"key":"{OTHER}"}}', []),
        ("1", None, [("$", "1", "null")]),
        (b"{", b"[", [("$", "{", "[")]),
    ],
)
def test_differences_of_two_texts(taped: Any, now: Any, found: list[Any]) -> None:
    assert [(one.where, one.taped, one.asked) for one in form_differences(taped, now)] == found


def test_a_call_in_another_place_of_its_lane_is_told() -> None:
    taped = Call.of(call("m/t0", 2, asked=4))
    assert position_differences(taped, {"call": "m/t0/k2", "asked": 4}) == ()
    found = position_differences(taped, {"call": "m/t0/k3", "asked": 5})
    assert [(one.taped, one.asked) for one in found] == [("number 3", "number 4"), ("4", "5")]
