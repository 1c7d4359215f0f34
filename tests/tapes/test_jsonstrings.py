"""Every string that is a value is found where it stands, under its path."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.jsonstrings import strings_in
from tapeproxy.tapes.layers import leaves

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_each_string_is_where_it_is_said_to_be(value: Any, indent: int | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii).encode()
    found = list(strings_in(text))
    for one in found:
        assert text[one.start - 1 : one.start] == text[one.end : one.end + 1] == b'"'
        assert orjson.loads(text[one.start - 1 : one.end + 1]) == one.value
    # The other walk tells long keys, too, under the place of their object.
    told = [(view.place, view.text.decode()) for view in leaves(value)]
    assert [pair for pair in ((one.path, one.value) for one in found) if pair not in told] == []


@pytest.mark.parametrize("text", ["", "{", '{"a": "b', "nul", '["a",]'])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        list(strings_in(text.encode()))
