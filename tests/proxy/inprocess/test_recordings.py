"""Recordings of this interpreter against real servers, and their replay."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import httpx
import openai
import pytest
import requests
from origin import Call, Origin

import tapeproxy
from tapeproxy.cli.verify import examine
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.unlocking import ask_nobody
from tapeproxy.tapes.errors import TapeExistsError, UsageError
from tapeproxy.testing import FakeProvider


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


@pytest.fixture
def origin() -> Iterator[Origin]:
    async def answer(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(call.request.target.encode())
        await call.chunk(b" live")
        await call.last_chunk()

    with Origin(answer) as running:
        yield running


@pytest.fixture
def hosts(origin: Origin) -> dict[str, str]:
    return {"api.test": origin.url, "plain.test:8080": origin.url}


def ask_all() -> list[str]:
    return [
        httpx.get("https://api.test/httpx").text,
        httpx.get("http://plain.test:8080/plain").text,
        requests.get("https://api.test/requests", timeout=10).text,
    ]


def test_what_was_recorded_replays(tmp_path: Path, hosts: dict[str, str]) -> None:
    path = tmp_path / "t.tape.jsonl.gz"
    with tapeproxy.record(path, hosts=hosts) as recording:
        live = ask_all()
    assert live == ["/httpx live", "/plain live", "/requests live"]
    assert recording.recorded.exchanges == 3
    with tapeproxy.replay(path) as run:
        assert ask_all() == live
        assert list(run.unused) == []
    tape, ending = load(path)
    assert tape.seal is not None
    assert ending.sealed
    assert run.trace_hash == tape.seal.trace
    urls = [exchange.request.url for exchange in tape.exchanges]
    assert urls == [b"https://api.test/httpx", b"http://plain.test:8080/plain", b"https://api.test/requests"]


def test_async_clients_are_recorded(tmp_path: Path, hosts: dict[str, str]) -> None:
    path = tmp_path / "t.tape.jsonl.gz"

    async def ask() -> list[str]:
        async with (
            httpx.AsyncClient() as client,
            aiohttp.ClientSession() as session,
            session.get("https://api.test/aiohttp") as response,
        ):
            return [(await client.get("https://api.test/httpx")).text, await response.text()]

    async def work() -> None:
        async with tapeproxy.record(path, hosts=hosts):
            live = await ask()
        async with tapeproxy.replay(path):
            assert await ask() == live == ["/httpx live", "/aiohttp live"]

    asyncio.run(work())


def test_an_sdk_and_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-that-nobody-may-see")
    path = tmp_path / "t.tape.jsonl.gz"
    client = openai.OpenAI(base_url="https://llm.test/v1")

    def ask() -> str:
        stream = client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "Say hello."}], stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    with FakeProvider() as provider, tapeproxy.record(path, hosts={"llm.test": provider.url}):
        live = ask()
    assert live
    monkeypatch.delenv("OPENAI_API_KEY")
    with tapeproxy.replay(path):
        assert ask() == live
        assert openai.OpenAI().api_key != "sk-a-secret-that-nobody-may-see"
    assert "sk-a-secret" not in repr(load(path)[0])


def test_own_servers_are_not_recorded(tmp_path: Path, origin: Origin) -> None:
    with tapeproxy.record(tmp_path / "t.tape.jsonl.gz") as recording:
        assert httpx.get(f"{origin.url}/own").text == "/own live"
    assert recording.recorded.exchanges == 0


def test_a_tape_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "t.tape.jsonl.gz"
    path.write_bytes(b"")
    with pytest.raises(TapeExistsError), tapeproxy.record(path):
        pass
    with tapeproxy.record(path, force=True):
        pass
    assert load(path)[1].sealed


def test_an_error_in_the_context_is_the_one_that_is_heard(tmp_path: Path) -> None:
    path = tmp_path / "t.tape.jsonl.gz"
    with pytest.raises(ZeroDivisionError), tapeproxy.record(path):
        _ = 1 / 0
    assert load(path)[1].sealed


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "t.tape.jsonl.gz"

    def ask() -> object:
        try:
            return httpx.get("https://down.test/").status_code
        except httpx.HTTPError as error:
            return type(error)

    with tapeproxy.record(path, hosts={"down.test": "http://127.0.0.1:9"}):
        live = ask()
    with tapeproxy.replay(path):
        assert ask() == live


def test_there_is_one_recording_at_a_time(tmp_path: Path) -> None:
    first, second = tapeproxy.record(tmp_path / "a.tape.jsonl.gz"), tapeproxy.record(tmp_path / "b.tape.jsonl.gz")
    with first, pytest.raises(UsageError, match=r"already, to .*a\.tape(?s:.*)end that recording first"), second:
        pass
    with tapeproxy.record(tmp_path / "b.tape.jsonl.gz"):
        pass


@pytest.mark.parametrize("late", [True, False])
def test_suspended_recordings_take_turns(tmp_path: Path, hosts: dict[str, str], late: bool) -> None:
    """As the tapes of a module and of a session do, and those of single tests between them."""
    paths = [tmp_path / f"{name}.tape.jsonl.gz" for name in "abc"]
    turns = [tapeproxy.record(path, hosts=hosts) for path in paths]
    asked: dict[Path, list[str]] = {path: [] for path in paths}
    with httpx.Client() as client:  # whose connections are kept
        for number, turn in enumerate([0, 1, 0, 2, 1, 0, 0, 1]):
            recording, path = turns[turn], f"/{number}"
            if not asked[paths[turn]]:
                (recording.open_late if late else recording.open)()
            recording.resume()
            assert client.get(f"https://api.test{path}").is_success
            recording.suspend()
            asked[paths[turn]].append(path)
        for recording in turns:
            recording.finish()
    for path, wanted in asked.items():
        assert examine(path, ask_nobody).good
        urls = [exchange.request.url.decode() for exchange in load(path)[0].exchanges]
        assert urls == [f"https://api.test{one}" for one in wanted]


def test_a_recording_may_begin_with_the_first_request(tmp_path: Path, hosts: dict[str, str]) -> None:
    path = tmp_path / "t.tape.jsonl.gz"
    recording = tapeproxy.record(path, hosts=hosts)
    recording.open_late()
    for asks in (False, True):
        recording.resume()
        assert recording.opened is False
        live = ask_all() if asks else []
        recording.suspend()
        assert path.exists() is recording.opened is asks
    recording.finish()
    with tapeproxy.replay(path):
        assert ask_all() == live


def test_a_recording_that_cannot_begin_says_so_in_the_end(tmp_path: Path, hosts: dict[str, str]) -> None:
    path = tmp_path / "t.tape.jsonl.gz"
    path.write_bytes(b"")
    recording = tapeproxy.record(path, hosts=hosts)
    recording.open_late()
    recording.resume()
    with pytest.raises(httpx.HTTPError):
        httpx.get("https://api.test/httpx")
    recording.suspend()
    with pytest.raises(TapeExistsError):
        recording.finish()
