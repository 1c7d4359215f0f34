"""An answer in an editor: what is shown, and the edits that follow from what was made of it."""

import json
from typing import Any

import pytest
from editsamples import ASKED, STREAMS, URLS, answered, streamed
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.editables import Editable, editable, edits_of, options_of
from tapeproxy.tapes.edits import BodyEdit, Edit, TextEdit, apply, describe
from tapeproxy.tapes.editwords import read_as
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.jsonvalues import read_json

BODY = b'{"a": 1.00, "n": 123456789012345678901234, "list": [1, {"b": "x"}], "t": "\\u00e9"}'


def test_a_plain_body_is_laid_out_and_changed_in_place() -> None:
    exchange = answered(BODY)
    before = editable(exchange)
    assert before.form == "json" and before.suffix == ".json"
    assert before.text.splitlines()[:2] == ["{", '  "a": 1.00,']
    assert edits_of(before, before.text, 3) == []
    edits = edits_of(before, before.text.replace('"x"', '"y"').replace("1.00", "2"), 3)
    assert describe(edits) == ["3: set $.a = 2", '3: set $.list[1].b = "y"']
    assert apply(exchange, edits).response_body == BODY.replace(b"1.00", b"2").replace(b'"x"', b'"y"')


def options_read(edits: list[Edit]) -> list[Edit]:
    """What `fork` makes of the options that stand for edits; a body begins with @ there."""
    return [read_as(option.removeprefix("--"), value) for option, value in options_of(edits)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(JSON, JSON)
def test_the_edits_make_of_one_value_the_other(old: Any, new: Any) -> None:
    exchange = answered(json.dumps(old).encode())
    edits = edits_of(editable(exchange), json.dumps(new, indent=3), 3)
    assert read_json(apply(exchange, edits).response_body)[0] == new
    assert options_read(edits) == edits


def test_a_stream_with_more_than_a_text_is_shown_as_the_answer_it_adds_up_to() -> None:
    exchange = streamed("anthropic", ["The ", "sea."], ['{"a":', "1}"])
    before = editable(exchange)
    assert before.form == "json"
    after = before.text.replace("The sea.", "A lake.").replace('"a": 1', '"a": 2')
    edits = edits_of(before, after, 3)
    assert describe(edits) == ['3: set $.content[0].text = "A lake."', "3: set $.content[1].input.a = 2"]
    call = read_call(apply(exchange, edits))
    assert call is not None and call.answer is not None and call.answer.text == "A lake."


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_of_words_alone_is_its_text(kind: str) -> None:
    assert editable(streamed(kind, ["a", "b\n"])) == Editable("words", "ab\n")


def test_other_texts_and_what_is_none() -> None:
    exchange = answered(b"hello", "text/plain")
    before = editable(exchange)
    assert (before, before.suffix) == (Editable("body", "hello"), ".txt")
    assert apply(exchange, edits_of(before, "bye\n", 3)).response_body == b"bye"
    with pytest.raises(UsageError, match="the body is not text"):
        editable(answered(b"\x00\xff", "image/png"))
    gone = answered(b"")
    gone.response = None
    with pytest.raises(UsageError, match="there is no answer"):
        editable(gone)


def test_what_is_no_json_any_more() -> None:
    before = editable(answered(b'{"a": 1}', url=URLS["ollama"], asked=ASKED))
    with pytest.raises(UsageError, match="not JSON: line 2, column"):
        edits_of(before, '{\n  "a": 1,,\n}\n', 3)


@pytest.mark.parametrize("text", ["", "No.", "12::No.", "@x", "-- \n=x", "é\u202e"])
def test_texts_and_bodies_are_options_too(text: str) -> None:
    edits: list[Edit] = [TextEdit(text, 7), BodyEdit(text.encode(), 7)]
    assert options_read(edits) == edits
