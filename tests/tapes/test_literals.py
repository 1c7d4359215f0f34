"""A known secret is found in whatever way it is written; the rest of the text stays byte for byte."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.literals import Literals
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.tokens import is_token

REDACTOR = Redactor(bytes(range(32)))
SECRET = 'k3y "of"/the+läne=\n\\7Q'
WRITTEN = {
    "plain": SECRET,
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON, not ASCII": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "twice": json.dumps(json.dumps(SECRET))[1:-1].strip('\\"'),
    "PHP's JSON": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "percent": quote(SECRET, safe=""),
    "percent, lower case": re.sub("%..", lambda match: match[0].lower(), quote(SECRET, safe="")),
    "percent, twice": quote(quote(SECRET, safe=""), safe=""),
    "form": quote_plus(SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "URL-safe base64, bare": base64.urlsafe_b64encode(f"?{SECRET}?".encode()).decode().rstrip("="),
    "base64, percent": quote(base64.b64encode(f"\xff{SECRET}".encode()).decode(), safe=""),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_secret_is_found_however_it_is_written(written: str) -> None:
    literals = Literals(REDACTOR.secret, [SECRET.encode()])
    text = f'{{"before": 1, "x": "({written})", "after": 2}}'.encode()
    clean = literals.redact(text)
    assert written.encode() not in clean
    assert clean.startswith(b'{"before": 1, "x": "(')
    assert clean.endswith(b')", "after": 2}')
    assert literals.redact(clean) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (b'{"password": "abc", "x": "abc"}', b'{"password": "TOKEN", "x": "abc"}'),
        (rb'{"x": "{\"password\":\"abc\"}"}', rb'{"x": "{\"password\":\"TOKEN\"}"}'),
        (b"password=abc&x=abc", b"password=TOKEN&x=abc"),
        (b"password: abcd, my password is abc", b"password: abcd, my password is abc"),
        (b'name="password"\r\n\r\nabc\r\n--B', b'name="password"\r\n\r\nTOKEN\r\n--B'),
        (b"postgres://me:xyz@db and me:xyz", b"postgres://me:TWO@db and me:xyz"),
    ],
)
def test_a_common_word_is_a_secret_only_behind_its_name(text: bytes, clean: bytes) -> None:
    literals = Literals(REDACTOR.secret, [], [("password", b"abc"), ("", b"xyz")])
    expected = clean.replace(b"TOKEN", REDACTOR.secret(b"abc")).replace(b"TWO", REDACTOR.secret(b"xyz"))
    assert literals.redact(text) == expected


def test_a_pattern_s_group_is_replaced_and_no_token_is_taken_apart() -> None:
    literals = Literals(REDACTOR.secret, [], patterns=(re.compile(rb"id-(\w+)"), re.compile(rb"[a-z2-7]{14,}")))
    clean = literals.redact(b"id-007, abcdefghijklmnopq")
    first, second = clean.removeprefix(b"id-").split(b", ")
    assert is_token(first)
    assert is_token(second)
    assert literals.redact(clean) == clean


@given(st.binary(max_size=300))
def test_other_bytes_stay(data: bytes) -> None:
    assert Literals(REDACTOR.secret, [SECRET.encode()], [("password", b"abc")]).redact(data) == data


@pytest.mark.parametrize(
    "text", [b"a" * 200_000 + b"%41", b"%41" * 60_000, b"a\\/" * 60_000, b"QUJD" * 60_000 + b" %20"]
)
def test_long_runs_are_looked_through_once(text: bytes) -> None:
    # From each of its places, a run of this length would take minutes.
    assert Literals(REDACTOR.secret, [SECRET.encode()]).redact(text) == text
