"""A request gets the tape's tokens where it has other secrets, and nothing else of it changes."""

import base64

import pytest

from tapeproxy.tapes.blanks import Blanks
from tapeproxy.tapes.tokens import make_token

KEY = bytes(range(32))
TOKEN = make_token(KEY, b"the secret of the tape")
SHORT = make_token(KEY, b"abc")


def taped(text: str) -> bytes:
    return text.encode().replace(b"TOKEN", TOKEN).replace(b"SHORT", SHORT)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('{"a": "so TOKEN it is"}', '{"a": "so another-secret-now it is"}'),
        ('{"a": "TOKEN", "b": "SHORT"}', '{"a": "x-y-z", "b": "d"}'),
        ("https://x.example/bot/TOKEN", "https://x.example/bot/12345"),
        ("TOKEN is where it begins", "s3cret is where it begins"),
    ],
)
def test_what_stands_where_a_token_was_becomes_it(text: str, asked: str) -> None:
    assert Blanks([taped(text)]).fill(asked.encode()) == taped(text)


def test_what_differs_elsewhere_stays() -> None:
    tape = taped('{"time": 1, "the message": "my key is TOKEN, keep it where nobody looks", "n": 1}')
    now = '{"time": 2, "the message": "my key is another, keep it where nobody looks", "n": 3}'
    assert Blanks([tape]).fill(now.encode()) == tape.replace(b"1", b"2", 1).replace(b'"n": 1', b'"n": 3')


def test_base64_that_holds_a_token_is_taken_whole() -> None:
    tape = b'{"file": "' + base64.b64encode(b"a: " + TOKEN) + b'"}'
    now = b'{"file": "' + base64.b64encode(b"a: " + b"s" * len(TOKEN)) + b'"}'
    assert Blanks([tape]).fill(now) == tape


@pytest.mark.parametrize("asked", ["", "nothing of it", '{"b": "so it is"}', '{"a": "so ' + "x" * 500 + ' it is"}'])
def test_other_requests_stay(asked: str) -> None:
    assert Blanks([taped('{"a": "so TOKEN it is"}')]).fill(asked.encode()) == asked.encode()


def test_a_text_that_is_all_secret_tells_no_place() -> None:
    assert Blanks([TOKEN, TOKEN + TOKEN]).fill(b"anything at all") == b"anything at all"
