"""Each way for an exchange to fail: what the client sees, what the tape says, and that what came is kept."""

import socket
from collections.abc import Awaitable, Callable

import httpx
import pytest
from authority import Authority
from origin import Call, Gate, Origin
from recording import Recording, read_all, read_until

from tapeproxy.tapes.records import End

type Make = Callable[..., Recording]


async def cut_in_a_chunk(call: Call) -> None:
    await call.head("200 OK", "Transfer-Encoding: chunked")
    await call.chunk(b"part")
    await call.send(b"10\r\nhalf")
    call.close()


async def cut_between_chunks(call: Call) -> None:
    await call.head("200 OK", "Transfer-Encoding: chunked")
    await call.chunk(b"part")
    await call.chunk(b"half")
    call.close()


async def cut_in_a_length(call: Call) -> None:
    await call.head("200 OK", "Content-Length: 100")
    await call.send(b"parthalf")
    call.close()


async def cut_in_the_head(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-")
    call.close()


async def cut_before_an_answer(call: Call) -> None:
    call.close()


async def garbage(call: Call) -> None:
    await call.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    call.close()


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (cut_in_a_chunk, b"parthalf"),
        (cut_between_chunks, b"parthalf"),
        (cut_in_a_length, b"parthalf"),
        (cut_in_the_head, None),
        (cut_before_an_answer, None),
        (garbage, None),
    ],
)
def test_an_upstream_that_hangs_up(
    record: Make, authority: Authority, secure: bool, answer: Callable[[Call], Awaitable[None]], body: bytes | None
) -> None:
    tls = authority.serving("127.0.0.1") if secure else None
    got = b""
    with (
        Origin(answer, tls=tls) as origin,
        record() as recording,
        recording.client() as client,
        pytest.raises(httpx.RemoteProtocolError),
        client.stream("GET", origin.url) as response,
    ):
        assert body is not None, "a page of mitmproxy's own"
        for piece in response.iter_raw():
            got += piece
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "upstream-cut"
    assert exchange.end.error
    assert (exchange.response is None) == (body is None)
    assert exchange.response_body == got == (body or b"")
    assert recording.wire.failures.count == 0


@pytest.mark.parametrize("before", [True, False], ids=["before the head", "in the body"])
def test_an_upstream_that_resets(record: Make, before: bool) -> None:
    got_it = Gate()

    async def reset(call: Call) -> None:
        if not before:
            await call.head("200 OK", "Transfer-Encoding: chunked")
            await call.chunk(b"part")
            await call.wait(got_it)
        call.reset()

    with Origin(reset) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        if not before:
            assert read_until(sock, b"part\r\n").endswith(b"part\r\n")
            got_it.open()
        with pytest.raises(ConnectionResetError):
            sock.recv(100)
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "reset"
    assert exchange.response_body == (b"" if before else b"part")


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_an_upstream_that_refuses(record: Make, secure: bool) -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))  # bound, not listening: refused, and nobody else gets the port
        url = f"{'https' if secure else 'http'}://127.0.0.1:{placeholder.getsockname()[1]}/"
        with record() as recording, recording.client() as client, pytest.raises(httpx.RemoteProtocolError):
            client.get(url)
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.response is None
    assert exchange.end.how == "connect-error"
    assert "Connect call failed" in (exchange.end.error or "")


def test_an_upstream_that_nobody_vouches_for(record: Make, authority: Authority) -> None:
    async def never(_: Call) -> None:
        raise AssertionError("the request was sent to a server with a bad certificate")

    with (
        Origin(never, tls=authority.serving("127.0.0.1")) as origin,
        record(upstream_ca=None) as recording,
        recording.client() as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get(origin.url)
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "connect-error"
    assert "Certificate verify failed" in (exchange.end.error or "")


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_client_that_goes_away(record: Make, authority: Authority, secure: bool) -> None:
    left = Gate()

    async def long(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"[DONE]")
        await call.gone()
        left.open()

    tls = authority.serving("127.0.0.1") if secure else None
    with Origin(long, tls=tls) as origin, record() as recording:
        sock = recording.tunnel("127.0.0.1", origin.port, authority.trusting()) if secure else recording.connect()
        with sock:
            sock.sendall(f"GET {'/' if secure else origin.url} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            read_until(sock, b"[DONE]\r\n")
        left.passed()  # the upstream is let go, too
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "client-gone"
    assert exchange.response_body == b"[DONE]"


def test_a_client_that_goes_away_before_the_answer(record: Make) -> None:
    asked, left = Gate(), Gate()

    async def silent(call: Call) -> None:
        asked.open()
        await call.gone()
        left.open()

    with Origin(silent) as origin, record() as recording:
        with recording.connect() as sock:
            sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            asked.passed()
        left.passed()
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "client-gone" and exchange.response is None


def test_a_client_that_goes_away_while_uploading_leaves_no_half_request(record: Make) -> None:
    async def never(_: Call) -> None:
        raise AssertionError("half a request was forwarded")

    with Origin(never) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"POST {origin.url}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf".encode())
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b""
    assert recording.tape().exchanges == []
    assert recording.wire.failures.count == 0


def test_draining_ends_what_is_still_open_before_the_tape_is_sealed(record: Make) -> None:
    async def endless(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"part")
        await call.gone()

    with Origin(endless) as origin:
        recording = record(drain=0)
        with recording, recording.connect() as sock:
            sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            read_until(sock, b"part\r\n")
            assert recording.records(End) == []
            recording.finish()
            assert read_all(sock) == b""
    tape = recording.tape()
    (exchange,) = tape.exchanges
    assert exchange.end is not None and exchange.end.how == "client-gone"
    assert tape.seal is not None


def test_draining_waits_for_an_exchange_but_not_for_an_idle_connection(record: Make) -> None:
    finish = Gate()

    async def slow(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"part")
        await call.wait(finish)
        await call.chunk(b"rest")
        await call.last_chunk()

    with Origin(slow) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        read_until(sock, b"part\r\n")
        recording.finish()
        finish.open()
        assert read_all(sock).endswith(b"rest\r\n0\r\n\r\n")
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "complete"
    assert exchange.response_body == b"partrest"
