from typing import Any

import pytest

from tapeproxy.tapes.exchanges import Chunk, Exchange, Tape
from tapeproxy.tapes.records import End, Exit, Head, How, Request, Response
from tapeproxy.tapes.summary import Row, Target, Totals, split_url, summarise, total

URL = b"https://api.openai.com/v1/chat/completions?x=1"
BODY = b'{"model": "m", "messages": []}'
ANSWER = b'{"model": "m-1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}'


def exchange(
    chunks: tuple[Chunk, ...] = (), end: How | None = "complete", status: int | None = 200, **request: Any
) -> Exchange:
    asked = Request(**({"t": 1000, "method": b"POST", "url": URL, "body": BODY} | request))
    response = None if status is None else Response(t=1500, of=1, status=status)
    return Exchange(1, 1, asked, response, list(chunks), end=None if end is None else End(t=9000, of=1, how=end))


def test_the_row_of_an_llm_call() -> None:
    assert summarise(exchange((Chunk(2000, ANSWER[:9]), Chunk(3000, ANSWER[9:])), lane="main")) == Row(
        number=1,
        lane="main",
        method="POST",
        target=Target("https", "api.openai.com", "/v1/chat/completions", "x=1"),
        status=200,
        how="complete",
        dialect="openai-chat",
        model="m-1",
        tokens_in=3,
        tokens_out=4,
        chunks=2,
        size=len(ANSWER),
        first_byte=1000,
        total=8000,
        error=None,
    )


@pytest.mark.parametrize(
    ("chunks", "status", "first_byte"),
    [
        ((), 204, 500),
        ((), None, None),
        ((Chunk(None, b"a"), Chunk(4000, b"b")), 200, 3000),
        ((Chunk(None, b"a"),), 200, None),
        ((Chunk(10, b"a"),), 200, 0),
        ((Chunk(1000, b"a"),), 200, None),
    ],
    ids=["no body", "no response", "the first that is known", "none is known", "runs backwards", "an import's"],
)
def test_the_time_to_the_first_byte(chunks: tuple[Chunk, ...], status: int | None, first_byte: int | None) -> None:
    assert summarise(exchange(chunks, status=status)).first_byte == first_byte


@pytest.mark.parametrize(
    ("status", "end", "words"),
    [
        (200, "complete", "200"),
        (429, "complete", "429"),
        (200, "upstream-cut", "200 upstream-cut"),
        (None, "connect-error", "connect-error"),
        (200, None, "200 unfinished"),
        (None, None, "unfinished"),
        (None, "complete", "no response"),
    ],
)
def test_the_result_says_what_is_not_as_it_should_be(status: int | None, end: How | None, words: str) -> None:
    assert summarise(exchange(status=status, end=end)).result == words


def test_the_error_is_the_providers_or_the_ends() -> None:
    said = exchange((Chunk(2000, b'{"error": {"message": "slow down"}}'),), status=429)
    assert summarise(said).error == "slow down"
    broken = exchange(status=None, body=b"")
    broken.end = End(t=1, of=1, how="connect-error", error="no such host")
    assert summarise(broken).error == "no such host"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (b"http://h:81/a/b?c=d?e#f", Target("http", "h:81", "/a/b", "c=d?e")),
        (b"https://h", Target("https", "h", "", "")),
        (b"https://h?q", Target("https", "h", "", "q")),
        (b"http://[::1]:80/", Target("http", "[::1]:80", "/", "")),
        (b"http://[", Target("http", "[", "", "")),
        (b"/only/path?q", Target("", "", "/only/path", "q")),
        (b"\xff\xfe", Target("", "", "ÿþ", "")),
        (b"", Target("", "", "", "")),
    ],
)
def test_any_url_has_parts(url: bytes, target: Target) -> None:
    assert split_url(url) == target


def test_totals() -> None:
    rows = [
        summarise(exchange((Chunk(2000, ANSWER),))),
        summarise(exchange((Chunk(2000, ANSWER),), end="reset")),
        summarise(exchange(status=500, method=b"GET", body=b"")),
    ]
    tape = Tape(Head(), exit=Exit(t=9, code=0, duration=77))
    assert total(tape, rows) == Totals(3, 2, 2, 6, 8, 0, 2 * len(ANSWER), 77)
    assert total(tape, []) == Totals(0, 0, 0, None, None, 0, 0, 77)
