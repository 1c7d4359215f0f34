"""Hints from the shim's lines to records without secrets, to the file of a replay's shims, and what a check says."""

import json
from pathlib import Path
from typing import Any

import pytest
from agentruns import exchange

from tapeproxy.proxy.hintvalues import HintCheck, write_calls
from tapeproxy.proxy.iovalues import ValueReader
from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.exchanges import assemble
from tapeproxy.tapes.records import Head, Record, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Drift, Violation

SECRET = "sk-proj-AbCdEf0123456789"
REDACTOR = Redactor(bytes(range(32)), [SECRET])
SEED = "5eed" * 16


def line(n: int = 0, k: int = 0, lane: str = "m", **fields: Any) -> dict[str, Any]:
    data = {"call": f"{lane}/k{k}", "args": '{"q":"a"}', "asked": 0, "began": 1005, "ended": 1009}
    out = {
        "k": "value",
        "lane": lane,
        "n": n,
        "what": "tool",
        "name": "search",
        "where": "x.py:1 in f",
        "content": "[1]",
    }
    return out | fields | {"data": data | fields.get("data", {})}


def read(fields: dict[str, Any], epoch: int = 0) -> Value:
    value = ValueReader(REDACTOR, bytes.fromhex(SEED), epoch).read(fields, 9)
    assert value is not None
    return value


def test_moments_count_from_the_start_of_the_tape() -> None:
    value = read(line(taped=3, taped_lane="m"), 1000)
    assert (value.data["began"], value.data["ended"], value.extra) == (5, 9, {})


def test_secrets_go_by_value_and_by_the_names_of_fields_and_json_stays_json() -> None:
    content = json.dumps({"key": SECRET, "api_key": "0123456789abcdefXYZ", "n": 123456789012})
    args = json.dumps({"password": "correct horse battery", "q": [SECRET]})
    value = read(line(content=content, digest="d", length=1, data={"args": args, "untaped": f"no {SECRET}"}))
    assert value.content is not None
    shown = value.content.decode() + json.dumps(value.data)
    assert [word for word in (SECRET, "0123456789abcdefXYZ", "correct horse battery") if word in shown] == []
    assert (json.loads(value.content)["n"], value.length) == (123456789012, len(value.content))
    assert json.loads(value.data["args"]).keys() == {"password", "q"}
    assert value.digest != "d"


def test_calls_are_written_in_the_order_in_which_a_lane_began_them(tmp_path: Path) -> None:
    values = [read(one) for one in (line(0, 10), line(1, 2), line(0, 0, "m/t0"), line(2, 11, what="final"))]
    write_calls(assemble(entries(values)), tmp_path / "calls")
    written = [json.loads(text) for text in (tmp_path / "calls").read_text().splitlines()]
    assert [one["data"]["call"] for one in written] == ["m/k2", "m/k10", "m/t0/k0"]
    assert (tmp_path / "calls").stat().st_mode & 0o077 == 0


def entries(values: list[Value], *others: Record) -> list[Entry]:
    return [Entry(index, bytes(32), 0, record) for index, record in enumerate((Head(seed=SEED), *others, *values))]


class Heard:
    """A check, and all that it said."""

    def __init__(self, *lines: dict[str, Any], live: bool = False, lenient: bool = False) -> None:
        self.told: list[Drift | Violation] = []
        tape = assemble(entries([read(one) for one in lines], *exchange(1, "http://a.test/", lane="m/k0/t1")))
        self.check = HintCheck(tape, REDACTOR, self.told.append, self.told.append, lambda: lenient, live=live)

    def take(self, fields: dict[str, Any]) -> None:
        value = self.check.read(fields)
        if value is not None:
            self.check.take(value, fields)

    def finish(self) -> list[str]:
        return self.check.finish(astray=False)


def served(n: int = 0, k: int = 0, **fields: Any) -> dict[str, Any]:
    return line(n, k, taped=n, taped_lane="m", **fields)


def final(content: str, n: int = 1) -> dict[str, Any]:
    return line(n, 9, what="final", name="final", content=content)


def test_a_served_call_covers_what_its_body_had_asked() -> None:
    heard = Heard(line(), line(1, 1))
    heard.take(served())
    assert (heard.check.served, heard.check.covered, heard.told) == (1, {1}, [])
    assert heard.finish() == ['a tool call on the tape was not made: search(q="a")']
    heard.take(served())  # told twice: a fork without our hooks
    assert heard.check.served == 1


def test_calls_whose_bodies_run_cover_nothing() -> None:
    heard = Heard(line(), live=True)
    heard.take(line())
    assert (heard.check.served, heard.check.covered, heard.finish()) == (0, frozenset(), [])


def test_calls_made_by_bodies_are_not_missed() -> None:
    heard = Heard(line(), line(0, 0, "m/k0"))
    heard.take(served())
    assert heard.finish() == []


def test_another_place_in_the_lane_is_one_drift() -> None:
    heard = Heard(line(), line(1, 1), line(2, 2))
    heard.take(served(1, 0))
    heard.take(served(2, 1))
    assert [one.what for one in heard.told] == ["the lane came another way to this call than on the tape"]


@pytest.mark.parametrize(
    "taped, now, told",
    [
        (['{"a":1}'], ['{"a":1}'], []),
        (['{"a":1}'], ['{"a":2}'], ["the run concludes something else than on the tape"]),
        (["1"], [], ["the run did not conclude what it did on the tape"]),
        ([], ["1"], ["the run concludes more than on the tape"]),
        (["1", "2"], ["1", "3"], ["the run concludes something else than on the tape"]),
    ],
)
def test_conclusions_are_compared(taped: list[str], now: list[str], told: list[str]) -> None:
    heard = Heard(line(), *(final(text, n + 1) for n, text in enumerate(taped)))
    for n, text in enumerate(now):
        heard.take(final(text, n + 1))
    heard.finish()
    assert [one.what for one in heard.told] == told


def test_after_a_fault_nothing_is_compared() -> None:
    heard = Heard(line(), final("1"), lenient=True)
    heard.take(final("2"))
    heard.take(served(data={"asked": 5}))
    assert (heard.finish(), heard.told) == ([], [])


def refused(**fields: Any) -> dict[str, Any]:
    base = {
        "k": "violation",
        "what": "tool",
        "name": "search",
        "lane": "m",
        "where": "x.py:1 in f",
        "args": '{"q":"b"}',
    }
    return base | fields


@pytest.mark.parametrize(
    "fields, said",
    [
        (
            {"why": "arguments", "taped": 0, "taped_lane": "m"},
            'other arguments than on the tape, where search(q="a") is next',
        ),
        ({"why": "used"}, "as often as on the tape"),
        ({"why": "lane"}, "for another lane"),
        ({"why": "name"}, "no such call"),
        ({"why": "arguments"}, "arguments"),
        ({"why": f"unreadable: {SECRET}"}, "unreadable: tpx"),
        ({"why": None, "args": None, "name": 5, "taped": []}, "None"),
    ],
)
def test_a_refused_call_is_a_violation_in_words(fields: dict[str, Any], said: str) -> None:
    heard = Heard(line())
    heard.check.refused(refused(**fields))
    (violation,) = heard.told
    assert isinstance(violation, Violation)
    assert violation.kind == "tool"
    assert said in violation.what
    assert bool(violation.differences) == ("taped_lane" in fields)
    assert SECRET not in json.dumps(violation.to_json()) + violation.to_text()


def test_a_malformed_line_is_nothing() -> None:
    heard = Heard(line())
    heard.take(line() | {"n": "x"})
    heard.take(line() | {"data": {"call": 5, "args": 7}, "taped": "x", "taped_lane": None})
    assert heard.told == []
