import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes import commontexts
from tapeproxy.tapes.commontexts import LEAST, Common, CommonTexts, chosen

LETTERS = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=LEAST, max_size=40)


@given(LETTERS, *[st.text(max_size=30)] * 4)
def test_what_two_texts_share_is_found_wherever_it_stands(part: str, a: str, b: str, c: str, d: str) -> None:
    found = [*CommonTexts(a + part + b).find([c + part + d])]
    assert any(one.at <= len(a) and one.at + one.length >= len(a) + len(part) for one in found)
    for one in found:
        long, other = (a + part + b)[one.at :], (c + part + d)[one.there :]
        assert long[: one.length] == other[: one.length]
        assert one.length >= LEAST


def test_shorter_parts_are_not_found() -> None:
    shared = "x" * (LEAST - 1)
    assert not [*CommonTexts(f"1{shared}2").find([f"3{shared}4"])]


def test_text_that_repeats_itself_is_given_up_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commontexts, "_EXTENSIONS", 10)
    common = CommonTexts("ab" * 300)
    assert [*common.find(["ab" * 3_000])]
    assert not common.whole


def test_the_first_ones_are_chosen_and_the_others_get_what_is_left() -> None:
    found = [Common(5, 0, 30, 0), Common(0, 0, 20, 1), Common(30, 0, 40, 2)]
    assert chosen(found, [(0, 60)]) == [Common(5, 0, 30, 0), Common(35, 5, 25, 2)]
