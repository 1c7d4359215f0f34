"""Traffic to servers of the run itself: taped and marked where it can be read, left alone where it can't."""

from collections.abc import Callable

import pytest
from authority import Authority
from origin import Call, Origin
from recording import Recording, read_until

type Make = Callable[..., Recording]


async def hello(call: Call) -> None:
    await call.reply(b"hello")


@pytest.mark.parametrize("listens", [True, False])
def test_a_request_to_a_server_of_the_run_is_taped_and_marked(record: Make, listens: bool) -> None:
    asked: list[int] = []

    def is_inside(port: int) -> bool:
        asked.append(port)
        return listens

    with Origin(hello) as origin, record(is_inside=is_inside) as recording, recording.client() as client:
        assert client.get(origin.url.replace("127.0.0.1", "localhost")).content == b"hello"
        assert asked == [origin.port]
    exchange = recording.exchange()
    assert exchange.request.inside is listens
    assert exchange.response_body == b"hello"


def test_tls_to_a_server_of_the_run_keeps_the_servers_own_certificate(
    record: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = Authority(tmp_path_factory.mktemp("own"), "the run's own CA")
    with (
        Origin(hello, tls=own.serving("127.0.0.1")) as origin,
        record(is_inside=lambda port: port == origin.port) as recording,
        recording.tunnel("127.0.0.1", origin.port, own.trusting()) as sock,
    ):
        # `own` signed it: the wire did not step in, for its certificates are of another authority.
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_until(sock, b"hello").endswith(b"\r\n\r\nhello")
    tape = recording.tape()
    assert tape.exchanges == []
    (note,) = tape.notes
    assert note.what == "inside-tunnel" and note.data == {"host": "127.0.0.1", "port": origin.port}


def test_http_in_a_tunnel_to_a_server_of_the_run_is_taped(record: Make) -> None:
    with (
        Origin(hello) as origin,
        record(is_inside=lambda _: True) as recording,
        recording.tunnel("127.0.0.1", origin.port) as sock,
    ):
        sock.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_until(sock, b"hello").endswith(b"\r\n\r\nhello")
    request = recording.exchange().request
    assert request.inside and request.url == f"{origin.url}/x".encode()


def test_nobody_is_asked_about_other_hosts(record: Make) -> None:
    def is_inside(port: int) -> bool:
        raise AssertionError(port)

    with (
        Origin(hello) as origin,
        record(is_inside=is_inside, hosts={"api.example.com": origin.url}) as recording,
        recording.client() as client,
    ):
        assert client.get(f"http://api.example.com:{origin.port}/").content == b"hello"
    assert recording.wire.failures.count == 0


def test_an_answer_that_cannot_be_had_fails_the_tape_not_the_agent(record: Make) -> None:
    def is_inside(port: int) -> bool:
        raise PermissionError(f"/proc is not for us ({port})")

    with Origin(hello) as origin, record(is_inside=is_inside) as recording, recording.client() as client:
        assert client.get(origin.url).content == b"hello"
    assert isinstance(recording.wire.failures.first, PermissionError)
