"""The user's own proxy: which hosts go through it, with what credentials, and what never does."""

import gzip
import socket
from collections.abc import Awaitable, Callable

import pytest
from authority import Authority
from corporate import corporate
from h2client import Client2
from origin import Call, Origin
from origin2 import Call as Call2
from origin2 import Origin2
from recording import Recording, read_until
from wstalks import WsClient, accepting, echo

from tapeproxy.addons.upstream import Upstream, bypasses, parse_upstream
from tapeproxy.tapes.errors import UsageError

type Make = Callable[..., Recording]


async def hello(call: Call) -> None:
    await call.reply(call.request.target.encode())


AUTH = "Proxy-Authorization: Basic dXNAZXI6cGE6c3M="


def test_tls_goes_through_the_proxy_with_credentials(record: Make, authority: Authority) -> None:
    with (
        Origin(hello, tls=authority.serving("api.example.com")) as origin,
        corporate(origin.port) as proxy,
        record(upstream=proxy.url) as recording,
        recording.client() as client,
    ):
        for path in ("/1", "/2"):
            assert client.get(f"https://api.example.com{path}").text == path
    (head,) = proxy.heads
    assert head.startswith("CONNECT api.example.com:443 HTTP/1.1\r\n") and AUTH in head
    assert all(seen.header("Proxy-Authorization") is None for seen in origin.requests)
    assert [e.request.url for e in recording.tape().exchanges] == [
        b"https://api.example.com/1",
        b"https://api.example.com/2",
    ]


def test_plain_requests_go_in_absolute_form_and_the_tape_has_no_credentials(record: Make) -> None:
    with corporate(0) as proxy, record(upstream=proxy.url) as recording, recording.client() as client:
        assert client.get("http://api.example.com/path").text == "proxy"
    (head,) = proxy.heads
    assert head.startswith("GET http://api.example.com/path HTTP/1.1\r\n") and AUTH in head
    request = recording.exchange().request
    assert request.url == b"http://api.example.com/path"
    assert all(name.lower() != b"proxy-authorization" for name, _ in request.headers)


def test_loopback_and_no_proxy_hosts_bypass_it_and_get_no_credentials(record: Make, authority: Authority) -> None:
    with (
        Origin(hello) as plain,
        Origin(hello, tls=authority.serving("127.0.0.1")) as secure,
        corporate(0) as proxy,
        record(upstream=proxy.url, no_proxy=("internal.example.com",)) as recording,
        recording.client() as client,
    ):
        assert client.get(f"{plain.url}/a").text == "/a"
        assert client.get(f"{secure.url}/b").text == "/b"
        assert client.get("http://api.example.com/").text == "proxy"
        assert client.get(f"{plain.url}/c").text == "/c"
        seen = plain.requests + secure.requests
    assert len(proxy.heads) == 1
    assert [one.target for one in seen] == ["/a", "/c", "/b"], "origin-form, as a server expects"
    assert all(one.header("Proxy-Authorization") is None for one in seen)
    assert recording.wire.failures.count == 0


def test_a_mapped_host_is_reached_past_the_proxy_when_it_is_here(record: Make, authority: Authority) -> None:
    with Origin(hello, tls=authority.serving("127.0.0.1")) as origin, corporate(0) as proxy:
        hosts = {"api.example.com": origin.url}
        with record(upstream=proxy.url, hosts=hosts) as recording, recording.client() as client:
            assert client.get("http://api.example.com/x").text == "/x"
            assert client.get("https://api.example.com/y").text == "/y"
    assert proxy.heads == []
    assert recording.wire.failures.count == 0


def test_tls_inside_the_run_never_goes_to_the_proxy(record: Make, authority: Authority) -> None:
    with (
        Origin(hello, tls=authority.serving("127.0.0.1")) as origin,
        corporate(0) as proxy,
        record(upstream=proxy.url, is_inside=lambda _: True) as recording,
        recording.tunnel("127.0.0.1", origin.port, authority.trusting()) as sock,
    ):
        sock.sendall(b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_until(sock, b"/in").endswith(b"\r\n\r\n/in")
    assert proxy.heads == []
    assert [note.what for note in recording.tape().notes] == ["inside-tunnel"]


@pytest.mark.parametrize("protocol", ["h2", "websocket"])
def test_what_is_spoken_in_the_clear_goes_through_a_tunnel_too(record: Make, protocol: str) -> None:
    async def answer(call: Call2) -> None:
        await call.head(200)
        await call.data(await call.body(), end=True)

    with (
        Origin2(answer) as spoken,
        Origin(accepting(echo)) as sockets,
        corporate(spoken.port if protocol == "h2" else sockets.port) as proxy,
        record(upstream=proxy.url) as recording,
    ):
        with recording.tunnel("api.example.com", 80) as sock:
            if protocol == "h2":
                client = Client2(sock, scheme="http")
                assert client.hear(client.ask("POST", "/", b"hello")).body == b"hello"
            else:
                talk = WsClient(sock, "api.example.com", "/").accepted()
                talk.send("hello")
                assert talk.texts(2) == ["hello", "olleh"]
                talk.close()
        assert [head.split("\r\n")[0] for head in proxy.heads] == ["CONNECT api.example.com:80 HTTP/1.1"]
    assert b"cGE6c3M" not in gzip.decompress(recording.path.read_bytes())


async def refuse(call: Call) -> None:
    await call.reply(b"no", "407 Proxy Authentication Required")


async def refuse_and_repeat(call: Call) -> None:
    sent = call.request.header("proxy-authorization") or ""
    await call.reply(b"no", f"407 Proxy has no me:pa:ss of {sent.partition(' ')[2]}")


async def vanish(call: Call) -> None:
    call.close()


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (refuse, "refused http connect request: 407 proxy"),
        (refuse_and_repeat, "407 proxy has no … of …"),
        (vanish, "connection closed"),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_named(
    record: Make, behaviour: Callable[[Call], Awaitable[None]], said: str
) -> None:
    with (
        Origin(behaviour) as proxy,
        record(upstream=f"http://me:pa:ss@127.0.0.1:{proxy.port}") as recording,
        recording.client() as client,
        pytest.raises(Exception, match="disconnected"),
    ):
        client.get("https://api.example.com/")
    end = recording.exchange().end
    assert end is not None and end.how == "connect-error"
    error = end.error or ""
    assert f"upstream proxy 127.0.0.1:{proxy.port}" in error.lower() and said in error.lower()
    whole = gzip.decompress(recording.path.read_bytes())
    assert "pa:ss" not in error and b"pa:ss" not in whole and b"cGE6c3M" not in whole


def test_a_proxy_that_is_not_there_is_named_and_a_server_past_it_is_not_blamed_on_it(record: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with record(upstream=f"http://127.0.0.1:{port}") as recording, recording.client() as client:
        for url in ("https://api.example.com/", f"http://127.0.0.1:{port}/"):
            with pytest.raises(Exception, match="disconnected"):
                client.get(url)
    through, past = [exchange.end.error or "" for exchange in recording.tape().exchanges if exchange.end]
    assert f"through the upstream proxy 127.0.0.1:{port}: " in through
    assert "upstream" not in past


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("http://proxy.example.com:3128", Upstream("http", "proxy.example.com", 3128)),
        ("proxy.example.com:3128", Upstream("http", "proxy.example.com", 3128)),
        ("https://proxy.example.com/", Upstream("https", "proxy.example.com", 443)),
        ("http://[::1]:3128", Upstream("http", "::1", 3128)),
        ("http://a:b@proxy", Upstream("http", "proxy", 80, b"Basic YTpi")),
        ("http://a@proxy", Upstream("http", "proxy", 80, b"Basic YTo=")),
    ],
)
def test_an_upstream_url(url: str, upstream: Upstream) -> None:
    assert parse_upstream(url) == upstream


@pytest.mark.parametrize(
    "url",
    [
        "socks5://me:secret@proxy:1080",
        "secret",
        "me:secret@proxy",
        "http://",
        "http://me:secret@proxy:port",
        "",
        "http://me:secret@[fd00::1",
        "PROXY proxy:3128",
        "http://me:secret@corp.test/proxy.pac",
        "file:///etc/proxy.pac",
        "pac+http://me:secret@corp.test/x",
    ],
)
def test_a_broken_upstream_url_never_shows_the_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_upstream(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "port", "rules", "expected"),
    [
        ("localhost", 80, (), True),
        ("127.0.0.1", 80, (), True),
        ("::1", 80, (), True),
        ("a.localhost", 80, (), True),
        ("example.com", 80, (), False),
        ("example.com", 80, ("*",), True),
        ("example.com", 80, ("example.com",), True),
        ("EXAMPLE.com.", 80, ("Example.com",), True),
        ("api.example.com", 80, ("example.com",), True),
        ("api.example.com", 80, (".example.com",), True),
        ("api.example.com", 80, ("*.example.com",), True),
        ("badexample.com", 80, ("example.com",), False),
        ("example.com", 80, ("example.com:80",), True),
        ("example.com", 443, ("example.com:80",), False),
        ("10.1.2.3", 80, ("10.0.0.0/8",), True),
        ("11.1.2.3", 80, ("10.0.0.0/8",), False),
        ("10.1.2.3", 80, ("10.1.2.3",), True),
        ("10.1.2.3", 80, ("fd00::/8",), False),
        ("fd00::1", 80, ("fd00::/8",), True),
        ("example.com", 80, ("", " ", "."), False),
    ],
)
def test_what_bypasses_the_proxy(host: str, port: int, rules: tuple[str, ...], expected: bool) -> None:
    assert bypasses(host, port, rules) is expected
