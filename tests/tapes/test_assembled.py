"""A text cut anew in proportion, and values of any stream, hostile ones too."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeproxy.tapes.assembled import Assembled, Piece, split_text
from tapeproxy.tapes.dialects.places import PLACES


@given(st.text(max_size=60), st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_a_text_is_cut_in_proportion(text: str, sizes: list[int]) -> None:
    pieces = split_text(text, sizes)
    assert "".join(pieces) == text and len(pieces) == len(sizes)
    if sum(sizes):
        assert not any(piece for piece, size in zip(pieces, sizes, strict=True) if not size)
        if len(text) >= sum(1 for size in sizes if size):
            assert all(piece for piece, size in zip(pieces, sizes, strict=True) if size)


@pytest.mark.parametrize(
    ("text", "sizes", "pieces"),
    [
        ("abcdef", [1, 1, 1], ["ab", "cd", "ef"]),
        ("abcd", [9, 1, 9], ["ab", "c", "d"]),
        ("ab", [1, 1, 1, 1], ["a", "", "b", ""]),
        ("", [3, 4], ["", ""]),
        ("abc", [0, 0], ["abc", ""]),
        ("日本語", [2, 0, 1], ["日本", "", "語"]),
    ],
)
def test_a_cut(text: str, sizes: list[int], pieces: list[str]) -> None:
    assert split_text(text, sizes) == pieces


def test_an_index_that_somebody_made_up_costs_nothing() -> None:
    one = Assembled()
    one.delta(("a", 10**9), Piece(0, ("x",), "y"))
    one.copy(("b", 2), Piece(0, ("x",), 1))
    assert one.document() == {"b": [None, None, 1]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["text", "response.output_text.delta", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "content", "index", "type", "response", "item", "output_index"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["type", "choices", "delta", "message", "index"]), JSON), max_size=5))
@pytest.mark.parametrize("dialect", PLACES)
def test_whatever_the_events_are(dialect: str, events: list[dict[str, Any]]) -> None:
    one = PLACES[dialect].assemble(list(enumerate(events)))
    document = one.document()
    assert one.changes(document) == []
    assert all(isinstance(keys, tuple) for keys in PLACES[dialect].words(events[0] if events else {}))
