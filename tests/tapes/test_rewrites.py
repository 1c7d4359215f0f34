"""Rewrites: how they are written, what they do, and which expressions are never run."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.rewrites import Rewrite, danger, parse_rewrite


@pytest.mark.parametrize(
    ("text", "data", "wanted"),
    [
        (r"\d+=N", b"a 12 b 345", b"a N b N"),
        (r"id\=\d+=id\=0", b"id=7&x=1", b"id=0&x=1"),
        (r"(\w+)@(\w+)=\2 at \1", b"me@here", b"here at me"),
        (r"é=e", "café".encode(), b"cafe"),
        (r"b=", b"\xffabc", b"\xffac"),
        (r"(?i)TOKEN-[a-f0-9]{8}=T", b"token-0123abcd", b"T"),
    ],
)
def test_rewriting(text: str, data: bytes, wanted: bytes) -> None:
    rewrite = parse_rewrite(text)
    assert rewrite(data) == wanted
    assert parse_rewrite(str(rewrite)) == rewrite


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "REGEX=REPLACEMENT"),
        ("abc", "REGEX=REPLACEMENT"),
        ("=b", "REGEX=REPLACEMENT"),
        ("a=b=c", r"every other one"),
        ("(=x", "cannot be understood"),
        (r"a=\1", "cannot be understood"),
        (r"a=\q", "cannot be understood"),
    ],
)
def test_what_is_no_rewrite_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_rewrite(text)


@given(st.text(max_size=20), st.text("ab\\\\1=", max_size=6))
def test_whatever_can_be_read_is_read_again_as_it_was_written(pattern: str, replacement: str) -> None:
    try:
        rewrite = parse_rewrite(f"{pattern}={replacement}")
    except ValueError:
        return
    assert parse_rewrite(str(rewrite)) == rewrite


CRUEL = [
    "(a+)+$",
    "(a*)*b",
    "(a|a)*b",
    "(a|aa)+$",
    "(?:a+){9}b",
    "((a+)b?)*c",
    "(a?){25}a{25}",
    "(?P<x>a+)*?b",
    "(?:(a)|b+)*c",
]


@pytest.mark.parametrize("pattern", [*CRUEL, "a" * 1001, "(?x)(a+ )+"])
def test_an_expression_that_can_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        Rewrite(pattern, "")


@pytest.mark.parametrize(
    "pattern",
    [
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        r"a+?b*c{2,3}d?",
        r"(foo|bar)?x",
        r"\(a+\)+[(+*)]+",
        r"(?:abc){2}",
        r"(?<=a)b+(?!c)",
        r"(?i)x+",
        r"[]a+]*",
        r"[^]]+",
    ],
)
def test_ordinary_expressions_are_taken(pattern: str) -> None:
    assert danger(pattern) == ""
    Rewrite(pattern, "")


def test_what_is_taken_is_quick_on_a_long_text() -> None:
    start = time.process_time()
    Rewrite(r'"at":"[^"]+"', "")(b'{"at":"' + b"a" * 1_000_000)
    assert time.process_time() - start < 5
