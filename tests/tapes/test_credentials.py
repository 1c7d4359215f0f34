"""What proxy credentials say: which run, and whether the client may come in."""

import base64

import pytest

from tapeproxy.tapes.credentials import (
    LONGEST_NAME,
    Credentials,
    RefusedError,
    check_name,
    check_token,
    split_credentials,
)
from tapeproxy.tapes.records import Headers

HOST = (b"host", b"example.com")


def header(text: str, name: bytes = b"Proxy-Authorization") -> tuple[bytes, bytes]:
    return name, b"Basic " + base64.b64encode(text.encode())


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((HOST,), None),
        ((HOST, header("a:t")), Credentials("a", "t")),
        ((header("a:", b"proxy-authorization"), HOST), Credentials("a", "")),
        ((header("a"), HOST), Credentials("a", "")),
        ((header(":t"), HOST), Credentials("", "t")),
        ((header("a:b:c"), HOST), Credentials("a", "b:c")),
        ((header("é:ü"), HOST), Credentials("é", "ü")),
        (((b"PROXY-AUTHORIZATION", b" bAsIc   YTp0 "), HOST), Credentials("a", "t")),
    ],
)
def test_credentials_are_read_and_taken_off(headers: Headers, said: Credentials | None) -> None:
    assert split_credentials(headers) == (said, (HOST,))


@pytest.mark.parametrize(
    "headers",
    [
        (header("a:t"), header("a:t")),
        ((b"proxy-authorization", b"Bearer YTp0"),),
        ((b"proxy-authorization", b"Basic ?"),),
        ((b"proxy-authorization", b"Basic YTp"),),
        ((b"proxy-authorization", b"Basic " + base64.b64encode(b"\xff:x")),),
        ((b"proxy-authorization", b"YTp0"),),
    ],
)
def test_credentials_that_cannot_be_read_are_refused(headers: Headers) -> None:
    with pytest.raises(RefusedError):
        split_credentials(headers)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "0", "a..b", "x" * LONGEST_NAME, "console"])
def test_names_that_can_be_files(name: str) -> None:
    assert check_name(name) == name


HOSTILE = [
    "../x",
    "..",
    ".",
    ".x",
    "a/b",
    "a\\b",
    "%2e%2e",
    "a\0",
    "a\n",
    "\u00e9",
    "\uff41",
    "-x",
    "x" * 65,
    "x" * 300,
]


@pytest.mark.parametrize("name", [*HOSTILE, "", " ", "a b", "NUL", "con.txt", "C:x", "a:b", "\ud800"])
def test_names_that_cannot(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_name(name)
    answer = refused.value.to_answer()
    assert answer.startswith(b"HTTP/1.1 407 ") and b"proxy-authenticate: Basic" in answer
    assert answer.isascii() and b"\0" not in answer


@pytest.mark.parametrize(
    ("said", "token", "passes"),
    [
        (None, "", True),
        (Credentials("a", "whatever"), "", True),
        (Credentials("a", "right"), "right", True),
        (Credentials("", "right"), "right", True),
        (None, "right", False),
        (Credentials("right", ""), "right", False),
        (Credentials("a", "wrong"), "right", False),
        (Credentials("a", "righ"), "right", False),
        (Credentials("a", "\u00fc"), "right", False),
    ],
)
def test_a_token_is_asked_for_where_there_is_one(said: Credentials | None, token: str, passes: bool) -> None:
    if passes:
        check_token(said, token)
        return
    with pytest.raises(RefusedError, match="token") as refused:
        check_token(said, token)
    assert "right" not in str(refused.value)


def test_an_answer_to_head_has_no_body() -> None:
    error = RefusedError("no")
    assert error.to_answer().removesuffix(error.content()) == error.to_answer(body=False)
