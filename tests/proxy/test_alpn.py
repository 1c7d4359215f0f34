"""What a server speaks is asked once, with the upstream proxy where there is one, and never with a request."""

import asyncio
import socket
import threading
from pathlib import Path

import pytest
from authority import Authority
from origin2 import Call, Origin2
from recording import Recording

from tapeproxy.addons.upstream import Upstream
from tapeproxy.proxy.alpn import Place, Servers


async def never(call: Call) -> None:
    raise AssertionError(f"a request was sent: {call.path}")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def servers(proxy: Upstream | None = None, known: bool | None = None, place: Place | None = None) -> Servers:
    return Servers(lambda host, port: place or (host, port), lambda _host, _port: proxy, lambda _host, _port: known)


def test_a_server_is_asked_once_by_all_who_want_to_know(authority: Authority) -> None:
    async def ask(port: int) -> list[bool]:
        asked = servers()
        return await asyncio.gather(*(asked.speak_http2("127.0.0.1", port) for _ in range(5)))

    with Origin2(never, authority.serving("127.0.0.1")) as origin:
        assert asyncio.run(ask(origin.port)) == [True] * 5
        assert origin.lines <= 1  # it may not have noticed yet
        assert origin.calls == []


def test_it_is_asked_through_the_upstream_proxy(tmp_path: Path, authority: Authority) -> None:
    with Origin2(never, authority.serving("127.0.0.1")) as origin:
        with Recording(tmp_path, authority, upstream_ca=authority.cert) as proxy:
            upstream = Upstream("http", "127.0.0.1", proxy.port, b"Basic eDp5")
            assert asyncio.run(servers(upstream).speak_http2("127.0.0.1", origin.port))
        assert proxy.tape().exchanges == []


def test_what_is_known_is_not_asked() -> None:
    for known in (True, False):
        assert asyncio.run(servers(known=known).speak_http2("127.0.0.1", 9)) is known


def test_a_server_without_tls_speaks_no_http2() -> None:
    asked = Servers(lambda _host, _port: None, lambda _host, _port: None)
    assert not asyncio.run(asked.speak_http2("127.0.0.1", 9))


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_is_no_tls_speaks_no_http2(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        assert not asyncio.run(servers().speak_http2(*server.getsockname()))
        thread.join()


def test_a_proxy_that_opens_no_tunnel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        upstream = Upstream("http", *server.getsockname())
        assert not asyncio.run(servers(upstream).speak_http2("127.0.0.1", 9))
        thread.join()
