"""What a tape may make the wire say: one HTTP answer for each exchange, and nothing else."""

from dataclasses import replace

import pytest

from tapeproxy.tapes.answers import Answer, flaw, render
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import End, Headers, Request, Response

OK = Response(t=0, of=1, status=200, reason=b"OK", headers=((b"content-length", b"2"),))


def exchange(
    response: Response = OK, *, method: bytes = b"GET", trailers: Headers = (), body: bytes = b"ok"
) -> Exchange:
    request = Request(t=0, method=method, url=b"http://h/", headers=(), body=b"")
    return Exchange(1, 1, request, response, [Chunk(0, body)], end=End(t=0, of=1, how="complete", trailers=trailers))


def text(answer: Answer) -> bytes:
    return b"".join(part.data for part in answer.parts)


SPLIT = b"x\r\nSet-Cookie: a=b"
WRONG: dict[str, Exchange] = {
    "line break in a value": exchange(replace(OK, headers=((b"a", SPLIT),))),
    "line feed in a value": exchange(replace(OK, headers=((b"a", b"x\nb: c"),))),
    "carriage return in a value": exchange(replace(OK, headers=((b"a", b"x\rb: c"),))),
    "NUL in a value": exchange(replace(OK, headers=((b"a", b"x\0y"),))),
    "a whole answer after a fold": exchange(replace(OK, headers=((b"a", b"x\r\n y\r\n\r\nHTTP/1.1 200 OK"),))),
    "line break in a name": exchange(replace(OK, headers=((b"a: b\r\nc", b"d"),))),
    "colon in a name": exchange(replace(OK, headers=((b"a:b", b"d"),))),
    "no name": exchange(replace(OK, headers=((b"", b"d"),))),
    "line break in the reason": exchange(replace(OK, reason=b"OK\r\na: b")),
    "NUL in the reason": exchange(replace(OK, reason=b"O\0K")),
    "line break in a trailer": exchange(replace(OK, framing="chunked"), trailers=((b"a", SPLIT),)),
    "line break in an early hint": exchange(replace(OK, informational=((103, ((b"link", SPLIT),)),))),
    "a final status as an early one": exchange(replace(OK, informational=((200, ()),))),
    "a switch of protocols as an early one": exchange(replace(OK, informational=((101, ()),))),
    "an early status as the final one": exchange(replace(OK, status=103)),
    "status 0": exchange(replace(OK, status=0)),
    "status -1": exchange(replace(OK, status=-1)),
    "status 1000": exchange(replace(OK, status=1000)),
    "no body, and chunks announced": exchange(
        replace(OK, framing="none", headers=((b"transfer-encoding", b"chunked"),)), body=b""
    ),
    "no body, and a length announced": exchange(replace(OK, framing="none"), body=b""),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_not_http_is_named(wrong: Exchange) -> None:
    assert flaw(wrong)


@pytest.mark.parametrize(
    "right",
    [
        exchange(),
        exchange(replace(OK, reason=b"", headers=((b"X-Odd", b"caf\xe9\t"), (b"x-empty", b"")))),
        exchange(replace(OK, status=999)),
        exchange(replace(OK, status=101, framing="none")),
        exchange(replace(OK, framing="none"), method=b"HEAD"),
        exchange(replace(OK, status=304, framing="none")),
        exchange(replace(OK, framing="none", headers=((b"Content-Length", b"0"),))),
        exchange(replace(OK, informational=((100, ()), (103, ((b"link", b"</a>"),))))),
        exchange(replace(OK, headers=((b"a", b"b \r\n  c\n\td"),)), trailers=((b"a", b"b\r\n c"),)),
    ],
)
def test_what_is_http_has_no_flaw(right: Exchange) -> None:
    assert flaw(right) is None


def test_folds_become_one_space() -> None:
    folded = replace(OK, framing="chunked", headers=((b"a", b"b \r\n  c\n\td"),))
    said = text(render(exchange(folded, trailers=((b"e", b"f\r\n g"),))))
    assert b"a: b c d\r\n" in said
    assert said.endswith(b"0\r\ne: f g\r\n\r\n")


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304)])
def test_where_http_has_no_body_none_is_sent(method: bytes, status: int) -> None:
    """Its bytes would be read as the next answer."""
    answer = render(exchange(replace(OK, status=status, framing="chunked"), method=method))
    assert text(answer).endswith(b"\r\ncontent-length: 2\r\n\r\n")
    assert answer.finish == "keep"


def test_chunks_are_announced_as_chunks() -> None:
    odd = replace(OK, framing="chunked", headers=((b"transfer-encoding", b"gzip"),))
    assert b"transfer-encoding: chunked\r\n" in text(render(exchange(odd)))


@pytest.mark.parametrize(
    ("http", "connection", "line", "finish"),
    [
        ("HTTP/1.1", b"", b"HTTP/1.1 200 OK", "keep"),
        ("HTTP/1.1", b"Close", b"HTTP/1.1 200 OK", "close"),
        ("HTTP/1.0", b"", b"HTTP/1.0 200 OK", "close"),
        ("HTTP/1.0", b"Keep-Alive", b"HTTP/1.0 200 OK", "keep"),
        ("HTTP/2.0", b"", b"HTTP/1.1 200 OK", "keep"),
        ("HTTP/1.1\r\nx: y", b"", b"HTTP/1.1 200 OK", "keep"),
    ],
)
def test_the_version_and_whether_the_connection_lives_on(
    http: str, connection: bytes, line: bytes, finish: str
) -> None:
    headers = (*OK.headers, *(((b"connection", connection),) if connection else ()))
    answer = render(exchange(replace(OK, http=http, headers=headers)))
    assert answer.finish == finish
    assert text(answer).startswith(line + b"\r\n")


def test_a_client_of_http_1_0_gets_no_early_hint() -> None:
    assert text(render(exchange(replace(OK, informational=((103, ()),))), http10=True)).startswith(b"HTTP/1.1 200 ")
