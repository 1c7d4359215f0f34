import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.indenting import indent_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def without_surrogates(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "laid_out"),
    [
        ('{"a":1,"b":[true,null]}', '{\n  "a": 1,\n  "b": [\n    true,\n    null\n  ]\n}'),
        (' { "a" : 0.00 , "a" : 1e5 } ', '{\n  "a": 0.00,\n  "a": 1e5\n}'),
        ('{"e":{},"l":[ ],"n":[[]]}', '{\n  "e": {},\n  "l": [],\n  "n": [\n    []\n  ]\n}'),
        (r'["a\"]{,:", "\u0041\\"]', '[\n  "a\\"]{,:",\n  "\\u0041\\\\"\n]'),
        ('"x"', '"x"'),
        ("-1.5", "-1.5"),
        ("", None),
        ("{", None),
        ("{'a': 1}", None),
        ("[NaN]", None),
    ],
)
def test_layout(text: str, laid_out: str | None) -> None:
    assert indent_json(text) == laid_out


@given(VALUES.filter(without_surrogates), st.booleans())
def test_only_white_space_moves(value: object, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    laid_out = indent_json(text)
    # A whole number of more than 64 bits is still what it was.
    assert laid_out == json.dumps(value, ensure_ascii=escaped, indent=2)


def test_depth_does_not_multiply_the_size() -> None:
    laid_out = indent_json("[" * 900 + "]" * 900)
    assert laid_out is not None
    assert len(laid_out) < 1800 * 90
