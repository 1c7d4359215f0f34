"""What a client and its server speak through the record wire is what they would have agreed on without it."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from authority import Authority
from h2client import Client2
from origin import Call as Call1
from origin import Origin
from origin2 import Call, Origin2
from recording import Recording, read_until


async def hello(call: Call1) -> None:
    await call.head("200 OK", "Content-Length: 2")
    await call.send(b"h1")


async def hello2(call: Call) -> None:
    await call.head(200)
    await call.data(b"h2", end=True)


@pytest.fixture
def record(tmp_path: Path, authority: Authority) -> Callable[..., Recording]:
    return lambda **options: Recording(tmp_path, authority, upstream_ca=authority.cert, **options)


def ask(recording: Recording, url: str, **options: bool) -> httpx.Response:
    with recording.client(**options) as client:
        return client.get(url)


@pytest.mark.parametrize("http2", [True, False])
def test_a_server_of_http1_is_spoken_to_as_without_us(
    record: Callable[..., Recording], authority: Authority, http2: bool
) -> None:
    with Origin(hello, tls=authority.serving("127.0.0.1")) as origin, record() as recording:
        reply = ask(recording, origin.url, http2=http2)
        assert (reply.http_version, reply.content) == ("HTTP/1.1", b"h1")
    assert recording.exchange().request.http == "HTTP/1.1"
    assert recording.wire.failures.count == 0


@pytest.mark.parametrize("http2", [True, False])
def test_a_server_of_both_is_asked_once(record: Callable[..., Recording], authority: Authority, http2: bool) -> None:
    with Origin2(hello2, authority.serving("127.0.0.1")) as origin, record() as recording:
        if not http2:
            with pytest.raises(httpx.RemoteProtocolError):  # this origin speaks nothing else
                ask(recording, origin.url)
            assert origin.lines == 0
            return
        for _ in range(3):
            assert ask(recording, origin.url, http2=True).http_version == "HTTP/2"
        assert len(origin.calls) == 3
        assert origin.lines == 4
    assert {one.request.alpn for one in recording.tape().exchanges} == {"h2"}


def test_where_a_host_is_mapped_the_server_in_its_place_is_asked(
    record: Callable[..., Recording], authority: Authority
) -> None:
    with (
        Origin2(hello2, authority.serving("127.0.0.1")) as origin,
        record(hosts={"api.example.com": origin.url}) as recording,
    ):
        assert ask(recording, "https://api.example.com/", http2=True).http_version == "HTTP/2"
        assert origin.calls[0].authority == "api.example.com"
    assert recording.exchange().request.url == b"https://api.example.com/"


def test_a_server_that_is_not_there_is_a_failed_connection(record: Callable[..., Recording]) -> None:
    with (
        record(hosts={"api.example.com": "https://127.0.0.1:9"}) as recording,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        ask(recording, "https://api.example.com/", http2=True)
    (end,) = [one.end for one in recording.tape().exchanges]
    assert end is not None and end.how == "connect-error"


def test_a_client_of_http2_alone_speaks_it_with_whomever(
    record: Callable[..., Recording], authority: Authority
) -> None:
    context = authority.trusting()
    context.set_alpn_protocols(["h2"])
    with Origin(hello, tls=authority.serving("127.0.0.1")) as origin, record() as recording:
        sock = recording.connect()
        sock.sendall(f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        with context.wrap_socket(sock, server_hostname="127.0.0.1") as tls:
            http = Client2(tls)
            assert http.hear(http.ask()).body == b"h1"
    exchange = recording.exchange()
    assert exchange.response is not None
    assert (exchange.request.http, exchange.response.http) == ("HTTP/2", "HTTP/1.1")
