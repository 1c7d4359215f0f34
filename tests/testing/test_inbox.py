"""Requests are the same however their bytes arrive."""

from collections.abc import Iterator

import httptools
import pytest

from tapeproxy.testing.inbox import Inbox, Request

POST = b"POST /v1/x?a=1&a=2&b= HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\nx-two: 2\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n"
GET_OLD = b"GET /old HTTP/1.0\r\n\r\n"
ABSOLUTE = (
    b"GET http://search.example.com/search?q=a%20b HTTP/1.1\r\nHost: search.example.com\r\nConnection: close\r\n\r\n"
)

CASES = [
    pytest.param(POST, "POST", "/v1/x", b"hello", True, id="content-length"),
    pytest.param(CHUNKED, "POST", "/x", b"abcde", True, id="chunked"),
    pytest.param(GET_OLD, "GET", "/old", b"", False, id="http-1.0"),
    pytest.param(ABSOLUTE, "GET", "/search", b"", False, id="absolute-form"),
]


def cuts(data: bytes) -> Iterator[list[bytes]]:
    yield [data]
    yield [data[i : i + 1] for i in range(len(data))]
    yield from ([data[:i], data[i:]] for i in range(1, len(data)))


@pytest.mark.parametrize(("data", "method", "path", "body", "keep_alive"), CASES)
def test_reads_a_request_however_it_is_cut(data: bytes, method: str, path: str, body: bytes, keep_alive: bool) -> None:
    for pieces in cuts(data):
        inbox = Inbox()
        for piece in pieces:
            inbox.feed(piece)
        (request,) = inbox.ready
        assert (request.method, request.path, request.body, request.keep_alive) == (method, path, body, keep_alive)


@pytest.mark.parametrize("data", [case.values[0] for case in CASES])
def test_a_truncated_request_is_not_ready(data: object) -> None:
    assert isinstance(data, bytes)
    for end in range(len(data)):
        inbox = Inbox()
        inbox.feed(data[:end])
        assert not inbox.ready, end


def test_pipelined_requests_come_in_order() -> None:
    inbox = Inbox()
    inbox.feed(POST + CHUNKED + POST)
    assert [request.body for request in inbox.ready] == [b"hello", b"abcde", b"hello"]


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", b"GET / HTTP/9.9.9\r\n\r\n"])
def test_garbage_is_an_error(data: bytes) -> None:
    with pytest.raises(httptools.HttpParserError):
        Inbox().feed(data)


def test_a_waiting_client_is_noticed_only_while_it_waits() -> None:
    head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    inbox = Inbox()
    inbox.feed(head)
    assert inbox.expects_continue
    inbox.feed(b"ab")
    assert not inbox.expects_continue


def test_an_upgrade_is_a_request_that_ends_the_connection() -> None:
    inbox = Inbox()
    inbox.feed(b"GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00")
    (request,) = inbox.ready
    assert not request.keep_alive


def test_request_accessors() -> None:
    request = Request("GET", "/a%20b?q=x+y&q=z&e=", (("x-two", "1"), ("x-two", "2")), b'{"a": 1}')
    assert request.path == "/a b"
    assert request.query == {"q": "z", "e": ""}
    assert (request.header("X-Two"), request.header("none", "-")) == ("1", "-")
    assert request.json() == {"a": 1}
    assert Request("GET", "//x", (), b"").path == "//x"
