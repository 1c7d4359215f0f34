"""The provider in HTTP/2, as real clients and one that sees every frame hear it."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
from h2client import Client2, Heard

from tapeproxy.testing import FakeProvider
from tapeproxy.testing.wire import Exchange, Server

CHAT = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "%b"}]}'
PATH = "/v1/chat/completions"


@contextmanager
def connected(port: int, trust: ssl.SSLContext) -> Iterator[Client2]:
    """A client on a connection for which HTTP/2 was agreed."""
    trust.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as sock,
    ):
        assert sock.selected_alpn_protocol() == "h2"
        yield Client2(sock)


def hear(script: dict[str, Any], tls: Any, *asked: tuple[str, str, bytes]) -> list[Heard]:
    """What is said to requests that are made at once, on one connection."""
    provider = FakeProvider({"gap_ms": [0, 0]} | script, tls=tls.server2)
    with provider, connected(provider.port, tls.client) as client:
        numbers = [client.ask(*one) for one in asked]
        return [client.hear(number) for number in numbers]


def test_who_offers_both_gets_http2_and_hears_the_same(tls: Any) -> None:
    said: dict[bool, tuple[list[tuple[str, str]], bytes]] = {}
    for http2 in (True, False):
        asking = httpx.Client(http2=http2, verify=tls.client, trust_env=False)
        with FakeProvider({"gap_ms": [0, 0]}, tls=tls.server2) as provider, asking as client:
            reply = client.post(provider.url + PATH, content=CHAT % b"hi")
        assert reply.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
        assert provider.requests[0].version == ("2" if http2 else "1.1")
        assert provider.requests[0].header("host") == f"127.0.0.1:{provider.port}"
        headers = [pair for pair in reply.headers.multi_items() if pair[0] not in ("connection", "transfer-encoding")]
        said[http2] = headers, reply.content
    assert said[True] == said[False]


def test_an_sdk_streams_over_it(tls: Any) -> None:
    with FakeProvider({"gap_ms": [0, 0], "reply": [{"text": "one two three"}]}, tls=tls.server2) as provider:
        asking = openai.DefaultHttpxClient(http2=True, verify=tls.client, trust_env=False)
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="any", http_client=asking) as client:
            messages: Any = [{"role": "user", "content": "hi"}]
            stream = client.chat.completions.create(model="m", messages=messages, stream=True)
            assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "one two three"
    assert provider.requests[0].version == "2"


def test_answers_of_one_connection_do_not_wait_for_each_other(tls: Any) -> None:
    """The first one asked for takes longer than a test may."""
    slow = {"when": {"user": "slow"}, "delay_ms": 3_600_000}
    with FakeProvider({"reply": [slow]}, tls=tls.server2) as provider, connected(provider.port, tls.client) as client:
        client.ask("POST", PATH, CHAT % b"slow")
        assert client.hear(client.ask("POST", PATH, CHAT % b"quick")).ended


def test_each_event_is_a_frame_and_a_large_answer_goes_by_the_windows(tls: Any) -> None:
    large = {"reply": [{"when": {"user": "large"}, "text": "x" * 300_000}, {"text": "a b"}]}
    body = CHAT.replace(b"true", b"false")
    streamed, whole = hear(large, tls, ("POST", PATH, CHAT % b"hi"), ("POST", PATH, body % b"large"))
    assert all(piece.startswith(b"data: ") and piece.endswith(b"\n\n") for piece in streamed.pieces)
    assert streamed.pieces[-1] == b"data: [DONE]\n\n"
    assert len(whole.body) == int(dict(whole.headers)["content-length"]) > 300_000


def test_what_has_no_body_ends_with_its_head(tls: Any) -> None:
    (found,) = hear({}, tls, ("HEAD", "/search?q=tides", b""))
    assert (found.status, found.ended, found.pieces) == (200, True, [])
    assert int(dict(found.headers)["content-length"]) > 0


def test_a_cut_is_a_reset_of_its_stream_alone(tls: Any) -> None:
    script = {"reply": [{"when": {"user": "cut"}, "cut_after": 2}]}
    cut, other = hear(script, tls, ("POST", PATH, CHAT % b"cut"), ("POST", PATH, CHAT % b"other"))
    assert (len(cut.pieces), cut.ended, cut.reset) == (2, False, 2)
    assert other.ended


def test_a_reset_breaks_the_connection(tls: Any) -> None:
    (broken,) = hear({"reply": [{"reset": True}]}, tls, ("POST", PATH, CHAT % b"hi"))
    assert (broken.status, broken.ended, broken.reset) == (0, False, None)


def test_a_client_that_takes_a_request_back_or_leaves_is_no_trouble(tls: Any) -> None:
    with FakeProvider({"gap_ms": [1, 1], "reply": [{"text": "word " * 50}]}, tls=tls.server2) as provider:
        with connected(provider.port, tls.client) as client:
            number = client.ask("POST", PATH, CHAT % b"hi")
            client.read()
            client.frames.reset_stream(number, 8)
            client.flush()
            assert client.hear(client.ask("GET", "/search?q=tides")).ended
            client.ask("POST", PATH, CHAT % b"left")
        with connected(provider.port, tls.client) as client:
            assert client.hear(client.ask("POST", PATH, CHAT % b"next")).ended


def test_expect_100_continue(tls: Any) -> None:
    with FakeProvider(tls=tls.server2) as provider, connected(provider.port, tls.client) as client:
        number = client.begin("POST", PATH, ("expect", "100-continue"))
        while not client.streams[number].early:
            client.read()
        client.say(number, CHAT % b"hi", end=True)
        assert client.hear(number).ended


def test_a_bug_in_the_handler_is_reported_and_closes_the_connection(tls: Any) -> None:
    reported: list[BaseException] = []

    async def broken(_: Exchange) -> None:
        raise ZeroDivisionError

    def ask(port: int) -> Heard:
        with connected(port, tls.client) as client:
            return client.hear(client.ask())

    async def scene() -> Heard:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
        server = Server(broken)
        port = await server.listen("127.0.0.1", 0, tls.server2)
        try:
            return await asyncio.to_thread(ask, port)
        finally:
            await server.aclose()

    assert not asyncio.run(scene()).ended
    assert isinstance(reported[0], ExceptionGroup) and reported[0].subgroup(ZeroDivisionError) is not None
