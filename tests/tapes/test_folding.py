import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.folding import Folded, fold


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("a  b\n\tc", "abc"),
        (r"a\nb", "ab"),
        (r"say \"hi\"", 'say"hi"'),
        (r"say \\\"hi\\\"", 'say"hi"'),
        (r"caf\u00e9", "café"),
        (r"\ud83d\ude00!", "😀!"),
        (r"\ud83d!", "\ufffd!"),
        (r"a\/b", "a/b"),
        ("", ""),
    ],
)
def test_spaces_and_escapes_go(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text(st.characters(exclude_characters="\\", exclude_categories=["Cc", "Cs"])))
def test_json_in_json_folds_as_the_text_itself(text: str) -> None:
    once = json.dumps(text)
    assert fold(once)[1:-1] == fold(text)
    assert fold(json.dumps(once)) == f'"{fold(once)}"'


@given(st.text(st.sampled_from('ab "\\nu0041é\n'), max_size=40))
def test_a_part_of_the_folded_text_is_found_again_in_the_text(text: str) -> None:
    one = Folded(text)
    for at in range(len(one.folded)):
        start, end = one.span(at, at + 1)
        assert 0 <= start < end <= len(text)
        assert fold(text[start:end]) in (one.folded[at], "", "\\") or one.folded[at] in fold(text[start:end])
