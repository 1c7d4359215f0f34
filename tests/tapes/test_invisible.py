import json

from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.invisible import HOSTILE, HOSTILE_IN_BLOCK, spelled, spelled_json


def test_what_cannot_be_seen_is_spelled() -> None:
    assert spelled("a\tb\r\nc\rd \x1b[1m \u202e\ufeff \U000e0041 é 🙂") == (
        "a\tb\nc\\rd \\x1b[1m \\u202e\\ufeff \\U000e0041 é 🙂"
    )
    assert spelled("\x00", lambda form: f"<{form}>") == "<\\x00>"


@given(st.text(st.characters(exclude_categories=[])))
def test_nothing_hostile_is_left_and_json_stays_the_same_value(text: str) -> None:
    assert HOSTILE_IN_BLOCK.search(spelled(text)) is None
    written = spelled_json(json.dumps([text], ensure_ascii=False))
    assert HOSTILE.search(written) is None
    assert json.loads(written) == [text]
