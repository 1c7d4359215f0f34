"""A token is found in any text, survives redaction, and says nothing but its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.tokens import (
    MAX_LENGTH,
    MIN_LENGTH,
    is_token,
    make_token,
    mask_tokens,
    placeholder,
    replace_tokens,
)

KEY = bytes(range(32))


@pytest.mark.parametrize("length", [1, MIN_LENGTH - 1, MIN_LENGTH, 51, 1700, MAX_LENGTH, MAX_LENGTH + 1])
def test_a_token_is_as_long_as_its_secret_where_it_can_be(length: int) -> None:
    token = make_token(KEY, b"s" * length)
    assert is_token(token)
    assert len(token) == min(max(length, MIN_LENGTH), MAX_LENGTH)


@given(st.binary(min_size=1, max_size=80), st.binary(max_size=20), st.binary(max_size=20))
def test_a_token_is_found_whatever_adjoins_it(secret: bytes, before: bytes, after: bytes) -> None:
    token = make_token(KEY, secret)
    assert mask_tokens(b"tpxaab" + token + b"aaa") == b"tpxaab<secret>aaa"
    found: list[bytes] = []
    replace_tokens(before + token + after, lambda t: found.append(t) or t)  # type: ignore[func-returns-value]  # terse
    assert token in found


@given(st.binary(max_size=200))
def test_text_that_is_no_token_is_left_alone(data: bytes) -> None:
    assert replace_tokens(data, lambda token: token) == data


def test_every_changed_character_breaks_a_token() -> None:
    token = make_token(KEY, b"a secret of some length")
    for at in range(len(token)):
        changed = bytearray(token)
        changed[at] = ord("q") if token[at] != ord("q") else ord("r")
        assert not is_token(bytes(changed))


def test_the_key_decides_the_token() -> None:
    assert make_token(KEY, b"the same secret") == make_token(KEY, b"the same secret")
    assert make_token(KEY, b"the same secret") != make_token(bytes(32), b"the same secret")


def test_a_placeholder_is_a_token_of_a_key_s_usual_length() -> None:
    value = placeholder("OPENAI_API_KEY").encode()
    assert is_token(value)
    assert len(value) >= 32
    assert value != placeholder("ANTHROPIC_API_KEY").encode()
