"""The provider as a running server: its life, what it remembers, and whether it repeats itself."""

import asyncio
import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tapeproxy.testing import FakeProvider, ListenError, ScriptError, parse_script, serve_forever

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
QUICK = {"gap_ms": [0, 0]}


def post(provider: FakeProvider, body: object = CHAT, **options: Any) -> httpx.Response:
    with httpx.Client(base_url=provider.url, trust_env=False, **options) as client:
        return client.post("/v1/chat/completions", json=body)


def heard(provider: FakeProvider, times: int = 1) -> list[tuple[list[tuple[str, str]], bytes]]:
    answers = [post(provider) for _ in range(times)]
    return [(answer.headers.multi_items(), answer.content) for answer in answers]


def test_it_remembers_every_request_as_it_was() -> None:
    with FakeProvider(QUICK) as provider:
        post(provider)
        with httpx.Client(trust_env=False) as client:
            client.get(f"{provider.url}/search", params={"q": "two tides"}, headers={"X-Mine": "1"})
    first, second = provider.requests
    assert (first.method, first.path, first.json()) == ("POST", "/v1/chat/completions", CHAT)
    assert (second.method, second.path, second.query) == ("GET", "/search", {"q": "two tides"})
    assert second.header("x-mine") == "1"


def test_by_default_two_providers_say_the_same_bytes() -> None:
    with FakeProvider(QUICK) as one, FakeProvider(QUICK) as two, FakeProvider(QUICK, seed=1) as other:
        said = heard(one, 2)
        assert said == heard(two, 2)
        assert said[0] != said[1]
        assert said != heard(other, 2)


def test_nondeterministic_with_a_seed_never_repeats_within_a_run_but_across_runs() -> None:
    runs = []
    for _ in range(2):
        with FakeProvider(QUICK, seed=5, nondeterministic=True) as provider:
            runs.append(heard(provider, 3))
    assert runs[0] == runs[1]
    assert len({body for _, body in runs[0]}) == 3


def test_nondeterministic_without_a_seed_never_repeats() -> None:
    runs = []
    for _ in range(2):
        with FakeProvider(QUICK, seed=None, nondeterministic=True) as provider:
            runs.append(heard(provider))
    assert runs[0] != runs[1]


def test_the_url_and_the_environment_follow_the_port() -> None:
    with FakeProvider() as provider:
        assert provider.url == f"http://127.0.0.1:{provider.port}"
        environment = provider.environment()
        assert environment["OPENAI_BASE_URL"] == f"{provider.url}/v1"
        assert environment["ANTHROPIC_BASE_URL"] == environment["SEARCH_URL"] == provider.url
        assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} <= set(environment)


def test_tls(tls: Any) -> None:
    with FakeProvider(QUICK, tls=tls.server) as provider:
        assert provider.url.startswith("https://")
        assert post(provider, verify=tls.client).status_code == 200


def test_stopping_frees_the_port_and_can_be_done_twice() -> None:
    provider = FakeProvider(QUICK).start()
    post(provider)
    provider.stop()
    provider.stop()
    with pytest.raises(httpx.ConnectError):
        post(provider)
    assert "fake-provider" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("sent", [b"", b"GET /search HTTP/1.1\r\n\r\n"], ids=["just connected", "mid-answer"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "mid-handshake"])
def test_stopping_drops_clients_at_once(sent: bytes, secure: bool, tls: Any) -> None:
    with FakeProvider({"delay_ms": 600_000}, tls=tls.server if secure else None) as provider:
        sock = socket.create_connection((provider.host, provider.port))
        sock.sendall(sent)
    with sock:
        sock.settimeout(5)
        with contextlib.suppress(ConnectionResetError):  # dropped, too
            while sock.recv(100):  # a TLS alert may come first
                pass


def test_stopping_in_mid_answer() -> None:
    """The stream is dropped between two events, without its end."""
    with (
        FakeProvider({"gap_ms": [600_000, 600_000]}) as provider,
        httpx.Client(base_url=provider.url, trust_env=False) as client,
        client.stream("POST", "/v1/chat/completions", json=CHAT) as response,
    ):
        provider.stop()
        with pytest.raises(httpx.TransportError):
            response.read()


def test_a_provider_that_was_never_started_stops() -> None:
    FakeProvider().stop()


def test_a_port_in_use_is_an_error_of_start() -> None:
    with FakeProvider() as first:
        with pytest.raises(ListenError) as caught:
            FakeProvider(port=first.port).start()
        assert caught.value.port == first.port


def test_a_script_may_be_a_path_text_or_data(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[reply]]\ntext = "Aye."\n')
    for script in (path, str(path), parse_script(path.read_text(), "s.toml"), {"reply": [{"text": "Aye."}]}):
        with FakeProvider(script) as provider:
            answer = post(provider, {**CHAT, "stream": False}).json()
            assert answer["choices"][0]["message"]["content"] == "Aye."


def test_a_bad_script_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="can't be read"):
        FakeProvider(tmp_path / "missing.toml")


def test_serve_forever_runs_in_the_callers_loop_until_cancelled() -> None:
    async def scene() -> httpx.Response:
        provider = FakeProvider(QUICK)
        listening = asyncio.Event()
        task = asyncio.create_task(serve_forever(provider, listening.set))
        await listening.wait()
        async with httpx.AsyncClient(base_url=provider.url, trust_env=False) as client:
            answer = await client.post("/v1/chat/completions", json=CHAT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(httpx.TransportError):
                await client.post("/v1/chat/completions", json=CHAT)
        return answer

    assert asyncio.run(scene()).status_code == 200
