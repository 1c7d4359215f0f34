"""Multipart bodies: whole, cut at every byte, and not multipart at all."""

import pytest

from tapeproxy.tapes.multiparts import ContentType, Part, parse_content_type, parse_multipart

BODY = (
    b'before\r\n--b\r\nContent-Disposition: form-data; name="f"\r\nX-Folded: a\r\n b\r\n\r\none\r\ntwo\r\n'
    b"--b  \r\n\r\n--bx is text\r\n--b--\r\nafter"
)
PARTS = [
    Part((((b"Content-Disposition"), b'form-data; name="f"'), (b"X-Folded", b"a\r\n b")), b"one\r\ntwo"),
    Part((), b"--bx is text"),
]


def test_a_whole_body() -> None:
    assert parse_multipart(BODY, b"b") == (b"before", PARTS, b"after")


def test_bare_line_feeds() -> None:
    assert parse_multipart(b"--b\nA: 1\n\nx\n--b--\n", b"b") == (b"", [Part(((b"A", b"1"),), b"x")], b"\n")


@pytest.mark.parametrize("data", [b"", b"text", b"--c\r\n\r\n--c--", b"x--b\r\n\r\nx--b--"])
def test_what_is_of_another_boundary_is_none(data: bytes) -> None:
    assert parse_multipart(data, b"b") is None


@pytest.mark.parametrize(
    ("piece", "part"),
    [
        (b"", Part((), b"")),
        (b"no headers, no blank line", Part((), b"no headers, no blank line")),
        (b"\r\nA: 1", Part((), b"A: 1")),
        (b"A: 1\r\n\r\n", Part(((b"A", b"1"),), b"")),
        (b"not a header\r\n\r\nx", Part((), b"not a header\r\n\r\nx")),
    ],
)
def test_odd_parts(piece: bytes, part: Part) -> None:
    assert parse_multipart(b"--b\r\n" + piece + b"\r\n--b--", b"b") == (b"", [part], b"")


def test_a_body_cut_anywhere_is_taken_as_far_as_it_goes() -> None:
    for end in range(len(BODY)):
        taken = parse_multipart(BODY[:end], b"b")
        assert (taken is None) == (end < BODY.index(b"--b") + 3)
        assert taken is None or len(taken[1]) <= 3


def test_too_many_parts_are_not_taken_apart() -> None:
    assert parse_multipart(b"--b\r\n\r\n\r\n" * 10_002 + b"--b--", b"b") is None


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"Text/HTML", ContentType("text/html")),
        (b"a/b; Charset=UTF-8;x=1", ContentType("a/b", (("charset", "UTF-8"), ("x", "1")))),
        (b'a/b; z="q;\\"r" ; a=', ContentType("a/b", (("a", ""), ("z", 'q;"r')))),
        (b"a/b; x=1; X=2", ContentType("a/b", (("x", "1"),))),
        (b"", ContentType("")),
        (b";;; =; \xff", ContentType("")),
    ],
)
def test_content_types(value: bytes, wanted: ContentType) -> None:
    assert parse_content_type(value) == wanted
