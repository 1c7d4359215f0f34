"""Requests out of bytes: whole, in pieces, and not beyond the limits."""

import pytest

from tapeproxy.proxy.requestreader import MAX_HEAD, Incoming, RequestReader, UnreadableError

POST = (
    b"POST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\nX-T: 1\r\n\r\n"
)
GET = b"GET http://h/ HTTP/1.0\r\n\r\n"
BOTH = [
    Incoming(b"POST", b"/a?b", ((b"Host", b"h"), (b"Transfer-Encoding", b"chunked")), b"hi!", False, True),
    Incoming(b"GET", b"http://h/", (), b"", True, False),
]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_requests_are_the_same_however_they_are_cut(size: int) -> None:
    reader = RequestReader()
    data = POST + GET
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    assert reader.requests == BOTH
    assert not reader.reading


def test_a_request_that_is_not_whole_is_none() -> None:
    for end in range(1, len(POST)):
        reader = RequestReader()
        reader.feed(POST[:end])
        assert (reader.requests, reader.reading) == ([], True)


OFFERS = (
    b"POST /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    b"Content-Length: 3\r\n\r\nhi!"
    b"POST /b HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n"
    b"GET /c HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
    b"POST /d HTTP/1.0\r\nUpgrade: TLS/1.2\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n"
)
OFFERED = [
    (b"/a", b"hi!", False, True),
    (b"/b", b"!", False, True),
    (b"/c", b"", False, True),
    (b"/d", b"", True, False),
]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_an_offer_of_another_protocol_is_a_request_as_any_other(size: int) -> None:
    reader = RequestReader()
    for at in range(0, len(OFFERS), size):
        assert not reader.feed(OFFERS[at : at + size])
    assert [(one.url, one.body, one.http10, one.keep) for one in reader.requests] == OFFERED
    assert [name for name, _ in reader.requests[0].headers][2:4] == [b"Upgrade", b"HTTP2-Settings"]
    assert not reader.reading


def test_an_offer_that_is_not_whole_is_no_request() -> None:
    first = OFFERS.partition(b"hi!")[0] + b"hi!"
    for end in range(1, len(first)):
        reader = RequestReader()
        reader.feed(first[:end])
        assert (reader.requests, reader.reading) == ([], True)


def test_a_hundred_offers_at_once_are_a_hundred_requests() -> None:
    reader = RequestReader()
    reader.feed(b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n" * 3000)
    assert len(reader.requests) == 3000


@pytest.mark.parametrize("also", [b"Content-Length: 4\r\n", b"Transfer-Encoding: gzip\r\n"])
def test_an_offer_hides_no_doubt_about_where_its_body_ends(also: bytes) -> None:
    head = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n" + also
    for offer in (b"", b"Upgrade: h2c\r\nConnection: upgrade\r\n"):
        reader = RequestReader()
        with pytest.raises(UnreadableError):
            reader.feed(head + offer + b"\r\nhi!")
        assert reader.requests == []


def test_what_follows_a_websockets_request_is_no_http() -> None:
    reader = RequestReader()
    head = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
    assert bytes(reader.feed(head + b"\r\n\x81\0")) == b"\x81\0"
    reader = RequestReader()
    assert not reader.feed(head + b"Content-Length: 2\r\n\r\n\x81\0")
    assert [one.body for one in reader.requests] == [b"\x81\0"]


def test_what_comes_after_a_connect_is_given_back() -> None:
    reader = RequestReader()
    assert bytes(reader.feed(b"CONNECT h:443 HTTP/1.1\r\n\r\n\x16\x03")) == b"\x16\x03"
    assert [(one.method, one.url) for one in reader.requests] == [(b"CONNECT", b"h:443")]


def test_what_came_before_an_error_is_kept() -> None:
    reader = RequestReader()
    with pytest.raises(UnreadableError) as caught:
        reader.feed(POST + b"\0\r\n\r\n")
    assert reader.requests == BOTH[:1]
    assert not caught.value.too_large


def test_who_expects_a_100_is_known_until_the_body_is_there() -> None:
    reader = RequestReader()
    reader.feed(b"PUT / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n")
    assert reader.expects
    reader.feed(b"x")
    assert not reader.expects


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nX", b""])
@pytest.mark.parametrize("piece", [b"a" * 4096, b"\r\n" * 2048])
def test_an_endless_head_is_refused_while_it_comes(start: bytes, piece: bytes) -> None:
    reader = RequestReader()
    with pytest.raises(UnreadableError) as caught:
        reader.feed(start)
        for _ in range(2 * MAX_HEAD // len(piece)):
            reader.feed(piece)
    assert caught.value.too_large or piece.startswith(b"\r") or not start


def test_heads_that_come_together_are_counted_one_by_one() -> None:
    reader = RequestReader()
    one = b"GET / HTTP/1.1\r\nX: " + b"x" * (MAX_HEAD // 3) + b"\r\n\r\n"
    for _ in range(2):
        reader.feed(one * 5 + one[:-2])
        reader.feed(one[-2:])
    assert len(reader.requests) == 12
