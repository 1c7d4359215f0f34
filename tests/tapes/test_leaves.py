"""Whole texts are found under the places that differences have."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.bodyforms import Body, PartValue
from tapeproxy.tapes.differences import body_differences
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
    assert leaf_texts(Body("lines", [{"a": long}, 1], b"")) == {"line 1 body $.a": long, "line 2 body $": "1"}
    parts = [PartValue("f", (), body({"a": long})), PartValue("", (), Body("bytes", b"x", b"x"))]
    assert leaf_texts(Body("multipart", parts, b"")) == {"part 1 (f) body $.a": long, "part 2 body": "x"}
    assert leaf_texts(Body("multipart", b"as in version 1", b"as in version 1")) == {"body": "as in version 1"}


@given(st.lists(json), st.lists(json))
def test_lines_and_parts_are_where_their_differences_are(taped: list[Any], asked: list[Any]) -> None:
    def bodies(values: list[Any]) -> list[Body]:
        parts = [PartValue("f", (), body(value)) for value in values]
        return [Body("lines", values, repr(values).encode()), Body("multipart", parts, repr(values).encode())]

    for one, other in zip(bodies(taped), bodies(asked), strict=True):
        texts = leaf_texts(other)
        for difference in body_differences(one, other):
            if difference.asked is not None and difference.where in texts:
                assert difference.asked.strip("…") in texts[difference.where]


@given(json, json)
def test_every_excerpt_of_a_leaf_is_of_its_text(taped: Any, asked: Any) -> None:
    texts = leaf_texts(body(asked))
    for difference in body_differences(body(taped), body(asked)):
        if difference.asked is not None and difference.where in texts:
            assert difference.asked.strip("…") in texts[difference.where]
