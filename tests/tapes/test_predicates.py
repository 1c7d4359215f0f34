"""Predicates on what a run concluded."""

import agentruns
import pytest

from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.predicates import conclusions, parse_predicate
from tapeproxy.tapes.records import Record, Value


def tape(records: list[Record]) -> Tape:
    decoder = TapeDecoder("t")
    return assemble([*decoder.feed(agentruns.tape_bytes(records))])


def final(content: bytes, n: int = 0) -> Value:
    return Value(t=1, lane="m", n=n, what="final_state", name="final_state", content=content)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$.exit=3", True),
        ("$.exit=0", False),
        ("$.exit!=0", True),
        ("$.answers[0].text=18 degrees.", True),
        ('$.answers[0].text="18 degrees."', True),
        ("$.answers[0].text~degr", True),
        ("$.answers[*].text~nowhere", False),
        ("$.answers[*].text!~nowhere", True),
        ("$.answers[1].body.degrees=18", True),
        ("$.answers[1].body~sky", True),
        ("$.answers[2].status=404", True),
        ("$.answer.status=null", True),
        ("$.requests[0].body.messages[0].content=Be brief.", True),
        ("$.requests[*].body.model=gpt-4o", True),
        ("$.requests[*].url~weather.test", True),
        ("$.request.url=https://down.test/", True),
        ("$.requests[9].url=x", False),
        ("$.requests[9].url!=x", True),
        ("$..role=tool", True),
        ("$.final_state=null", True),
    ],
)
def test_a_run(text: str, holds: bool) -> None:
    assert parse_predicate(text).holds(tape(agentruns.sample())) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$.final_state.total=42", True),
        ("$.final_state.total=42.0", True),
        ('$.final_state.total="42"', False),
        ("$.final_state.ok=true", True),
        ("$.final_state.ok=1", False),
        ("$.final_state['a=b']=x", True),
        ("$.final_state['a=b']!=x", False),
        ("$.exit=null", True),
    ],
)
def test_what_the_run_said_of_itself(text: str, holds: bool) -> None:
    run = [final(b'{"total": 1}'), final(b'{"total": 42, "ok": true, "a=b": "x"}', 1)]
    assert parse_predicate(text).holds(tape([*run])) is holds


@pytest.mark.parametrize("text", ["", "$", "exit=3", "$.exit", "$.a[-1]=3", "=3"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="JSON path"):
        parse_predicate(text)


def test_a_tape_without_anything() -> None:
    assert conclusions(tape([])) == {
        "exit": None,
        "final_state": None,
        "requests": [],
        "answers": [],
        "request": None,
        "answer": None,
    }
