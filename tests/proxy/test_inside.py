"""What a server of the run is sent in a replay."""

from tapeproxy.proxy.decisions import Asked
from tapeproxy.proxy.inside import request_head
from tapeproxy.tapes.records import Headers


def asked(*headers: tuple[bytes, bytes]) -> Asked:
    named: Headers = ((b"Host", b"h"), *headers)
    return Asked(b"POST", b"http://127.0.0.1:1/a?b", named, b"hi!", http10=False, port=1)


def test_a_server_of_the_run_is_offered_no_http2_as_when_it_was_recorded() -> None:
    offer = (b"Connection", b"Upgrade, HTTP2-Settings"), (b"HTTP2-Settings", b"AA"), (b"Upgrade", b"h2c")
    head = request_head(asked(*offer, (b"Content-Length", b"3")))
    assert head == b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n"


def test_what_asks_for_a_websocket_goes_there_as_it_came() -> None:
    asking = (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")
    assert request_head(asked(*asking)) == (
        b"POST /a?b HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )
