"""The server as its client sees it, byte for byte, over real loopback sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tapeproxy.testing.wire import Exchange, Handler, ListenError, Server

GET = b"GET / HTTP/1.1\r\n\r\n"


@asynccontextmanager
async def serving(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = Server(handle)
    port = await server.listen("127.0.0.1", 0, tls)
    try:
        yield port
    finally:
        await server.aclose()


async def talk(port: int, sent: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """Send, then read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        writer.write(sent)
        return await reader.read()
    finally:
        writer.close()


async def in_chunks(exchange: Exchange) -> None:
    await exchange.start(200, [("x-a", "1"), ("x-a", "2")])
    for piece in (b"one", b"", b"two-two"):
        await exchange.send(piece)
    await exchange.finish()


async def whole(exchange: Exchange) -> None:
    await exchange.answer(529, [("x-a", "1")], b"busy")


async def cut_short(exchange: Exchange) -> None:
    await exchange.start(200)
    await exchange.send(b"one")
    exchange.cut()


CLOSE = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("handle", "sent", "heard"),
    [
        pytest.param(
            in_chunks,
            CLOSE,
            b"HTTP/1.1 200 OK\r\nx-a: 1\r\nx-a: 2\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
            b"3\r\none\r\n7\r\ntwo-two\r\n0\r\n\r\n",
            id="chunked",
        ),
        pytest.param(
            in_chunks,
            b"GET / HTTP/1.0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx-a: 1\r\nx-a: 2\r\nconnection: close\r\n\r\nonetwo-two",
            id="http-1.0 has no chunks",
        ),
        pytest.param(
            whole,
            CLOSE,
            b"HTTP/1.1 529 Overloaded\r\nx-a: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy",
            id="whole",
        ),
        pytest.param(
            whole,
            b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n",
            b"HTTP/1.1 529 Overloaded\r\nx-a: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\n",
            id="head has no body",
        ),
        pytest.param(
            whole,
            GET + CLOSE,
            b"HTTP/1.1 529 Overloaded\r\nx-a: 1\r\ncontent-length: 4\r\nconnection: keep-alive\r\n\r\nbusy"
            b"HTTP/1.1 529 Overloaded\r\nx-a: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy",
            id="pipelined",
        ),
        pytest.param(
            cut_short,
            GET,
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n3\r\none\r\n",
            id="cut: no last chunk",
        ),
    ],
)
def test_what_the_client_hears(handle: Handler, sent: bytes, heard: bytes) -> None:
    async def scene() -> bytes:
        async with serving(handle) as port:
            return await talk(port, sent)

    assert asyncio.run(scene()) == heard


def test_tls(tls: Any) -> None:
    async def scene() -> bytes:
        async with serving(whole, tls.server) as port:
            return await talk(port, CLOSE, tls.client)

    assert asyncio.run(scene()).endswith(b"busy")


def test_garbage_gets_a_400_and_a_plain_client_on_a_tls_port_is_dropped(tls: Any) -> None:
    async def scene() -> tuple[bytes, bytes]:
        async with serving(whole) as port, serving(whole, tls.server) as tls_port:
            return await talk(port, b"\x16\x03\x01\x02"), await talk(tls_port, GET)

    refused, dropped = asyncio.run(scene())
    assert refused.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert dropped == b""


@pytest.mark.parametrize("begun", [False, True], ids=["before the head", "mid-body"])
def test_a_reset_reaches_the_client_as_a_reset(begun: bool) -> None:
    async def reset(exchange: Exchange) -> None:
        if begun:
            await exchange.start(200)
            await exchange.send(b"one")
        exchange.reset()

    async def scene() -> None:
        async with serving(reset) as port:
            await talk(port, GET)

    with pytest.raises(ConnectionResetError):
        asyncio.run(scene())


def test_expect_100_continue() -> None:
    async def echo(exchange: Exchange) -> None:
        await exchange.answer(200, [], exchange.request.body)

    async def scene() -> bytes:
        async with serving(echo) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
            interim = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"ab")
            rest = await reader.read()
            writer.close()
            return interim + rest

    heard = asyncio.run(scene())
    assert heard.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert heard.endswith(b"\r\n\r\nab")


def test_a_client_that_leaves_ends_only_its_own_exchange() -> None:
    """The handler's next write fails; the next client is served."""
    ended: list[str] = []

    async def endless(exchange: Exchange) -> None:
        if exchange.request.path == "/short":
            await whole(exchange)
            return
        await exchange.start(200)
        try:
            while True:
                await exchange.send(b"x" * 65536)
        except ConnectionError:
            ended.append("gone")
            raise

    async def scene() -> bytes:
        async with serving(endless) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET)
            await reader.read(1)
            writer.transport.abort()
            return await talk(port, CLOSE.replace(b"/ ", b"/short ", 1))

    assert asyncio.run(scene()).endswith(b"busy")
    assert ended == ["gone"]


def test_a_bug_in_the_handler_is_reported_and_closes_the_connection() -> None:
    reported: list[BaseException] = []

    async def broken(_exchange: Exchange) -> None:
        raise ZeroDivisionError

    async def scene() -> bytes:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
        async with serving(broken) as port:
            return await talk(port, GET)

    assert asyncio.run(scene()) == b""
    assert [type(error) for error in reported] == [ZeroDivisionError]


async def _wait_forever(exchange: Exchange) -> None:
    await exchange.start(200)
    await asyncio.Event().wait()


@pytest.mark.parametrize("sent", [b"", b"GET / HT", GET], ids=["idle", "mid-request", "mid-response"])
def test_closing_drops_every_connection(sent: bytes) -> None:
    async def scene() -> None:
        server = Server(_wait_forever)
        port = await server.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        if sent == GET:
            await reader.readuntil(b"\r\n\r\n")
        await server.aclose()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await _ignore_reset(reader.read)
        writer.close()

    asyncio.run(asyncio.wait_for(scene(), 10))


async def _ignore_reset(read: Callable[[], Awaitable[bytes]]) -> None:
    """A dropped connection ends in EOF or a reset, as the kernel likes."""
    try:
        assert await read() == b""
    except ConnectionResetError:
        return


def test_a_port_in_use_is_a_listen_error() -> None:
    async def scene() -> None:
        async with serving(whole) as port:
            with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{port}: the fake provider cannot listen") as caught:
                await Server(whole).listen("127.0.0.1", port)
            assert (caught.value.host, caught.value.port) == ("127.0.0.1", port)

    asyncio.run(scene())
