"""Whole texts are found under the places that differences have."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.differences import body_differences
from tapeproxy.tapes.identity import Body
from tapeproxy.tapes.leaves import leaf_texts

json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
)


def body(value: Any) -> Body:
    return Body("json", value, repr(value).encode())


def test_a_long_text_is_whole() -> None:
    long = "word " * 100
    assert leaf_texts(body({"a": [1, long]})) == {"body $.a[0]": "1", "body $.a[1]": long}
    assert leaf_texts(Body("bytes", b"ab", b"ab")) == {"body": "ab"}
    assert leaf_texts(Body("form", (), b"")) == {}


@given(json, json)
def test_every_excerpt_of_a_leaf_is_of_its_text(taped: Any, asked: Any) -> None:
    texts = leaf_texts(body(asked))
    for difference in body_differences(body(taped), body(asked)):
        if difference.asked is not None and difference.where in texts:
            assert difference.asked.strip("…") in texts[difference.where]
