"""Replays within this interpreter, heard by async clients: httpx on asyncio, trio and uvloop, aiohttp, SDKs."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import httpx
import inprocesstapes
import openai
import pytest
import uvloop
from inprocesstapes import ASKED, EVENTS, URLS
from origin import Call, Origin

import tapeproxy
from tapeproxy.proxy.inprocess.replays import TapeViolationError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return inprocesstapes.api_tape(tmp_path)


type Runner = Callable[[Callable[[], Awaitable[None]]], None]
RUNNERS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "trio": {"backend": "trio"},
    "uvloop": {"backend_options": {"loop_factory": uvloop.new_event_loop}},
}


@pytest.fixture(params=RUNNERS.values(), ids=list(RUNNERS))
def run(request: pytest.FixtureRequest) -> Runner:
    return lambda work: anyio.run(work, **request.param)


@pytest.fixture(params=[RUNNERS["asyncio"], RUNNERS["uvloop"]], ids=["asyncio", "uvloop"])
def run_asyncio(request: pytest.FixtureRequest) -> Runner:
    return lambda work: anyio.run(work, **request.param)


def test_httpx_hears_the_tape(tape: Path, run: Runner) -> None:
    async def work() -> None:
        async with httpx.AsyncClient() as client, tapeproxy.replay(tape) as replay:
            assert [(await client.get(url)).json() for url in URLS] == [{"n": 0}, {"n": 1}, {"n": 2}]
            async with client.stream("GET", "https://api.test/events") as response:
                assert b"".join([part async for part in response.aiter_raw()]) == b"".join(EVENTS)
            assert len(replay.exchanges) == 4

    run(work)


def test_an_sdk_that_was_made_before_hears_the_tape(tape: Path, run_asyncio: Runner) -> None:
    async def work() -> None:
        async with openai.AsyncOpenAI(base_url="https://llm.test/v1", api_key="sk-made-before") as client:
            for _ in range(2):
                async with tapeproxy.replay(tape):
                    answer = await client.chat.completions.create(**ASKED)  # type: ignore[call-overload]  # a table's
                    assert answer.choices[0].message.content == "hello from the tape"

    run_asyncio(work)


def test_aiohttp_hears_the_tape(tape: Path, run_asyncio: Runner) -> None:
    async def work() -> None:
        async with aiohttp.ClientSession() as session, tapeproxy.replay(tape):
            for n, url in enumerate(URLS):
                async with session.get(url) as response:
                    assert await response.json() == {"n": n}

    run_asyncio(work)


def test_side_by_side(tmp_path: Path, run: Runner) -> None:
    paths = [f"/{n}" for n in range(40)]
    tape = inprocesstapes.gets(tmp_path, *paths)
    heard = dict[str, str]()

    async def work() -> None:
        async def ask(client: httpx.AsyncClient, path: str) -> None:
            heard[path] = (await client.get(f"https://api.test{path}")).text

        async with httpx.AsyncClient() as client, tapeproxy.replay(tape), anyio.create_task_group() as tasks:
            for path in paths:
                tasks.start_soon(ask, client, path)

    run(work)
    assert heard == {path: path for path in paths}


def test_a_large_body_goes_through(tmp_path: Path, run: Runner) -> None:
    body = json.dumps({"text": "x" * 3_000_000}).encode()
    tape = inprocesstapes.write_tape(
        tmp_path / "t.tape.jsonl.gz",
        ("https://api.test/up", {"method": "POST", "asked": body, "chunks": [b"y" * 5_000_000]}),
    )

    async def work() -> None:
        async with httpx.AsyncClient() as client, tapeproxy.replay(tape):
            asked = client.post("https://api.test/up", content=body, headers={"Content-Type": "application/json"})
            assert len((await asked).content) == 5_000_000

    run(work)


def test_a_violation_is_raised_at_the_end(tape: Path, run: Runner) -> None:
    async def work() -> None:
        async with httpx.AsyncClient() as client, tapeproxy.replay(tape):
            assert (await client.get("https://api.test/three")).status_code == 470

    with pytest.raises(TapeViolationError, match=r"https://api\.test/three"):
        run(work)


async def by_httpx(client: httpx.AsyncClient, url: str) -> bytes:
    return (await client.get(url)).content


async def by_aiohttp(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as response:
        return await response.read()


@pytest.mark.parametrize(
    ("new", "ask"), [(httpx.AsyncClient, by_httpx), (aiohttp.ClientSession, by_aiohttp)], ids=["httpx", "aiohttp"]
)
def test_pooled_connections_do_not_leak(tmp_path: Path, run_asyncio: Runner, new: Any, ask: Any) -> None:
    async def live(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 4")
        await call.send(b"live")

    async def work() -> None:
        async with new() as client:
            heard = [await ask(client, url)]
            async with tapeproxy.replay(tape):
                heard.append(await ask(client, url))
                async with tapeproxy.replay(other):
                    heard.append(await ask(client, url))
                heard.append(await ask(client, url))
            heard.append(await ask(client, url))
            with tapeproxy.replay(tape):
                heard.append(await ask(client, url))
        assert heard == [b"live", b"taped", b"other", b"taped", b"live", b"taped"]

    with Origin(live) as origin:
        url = origin.url + "/"
        tape = inprocesstapes.write_tape(tmp_path / "t.tape.jsonl.gz", *[(url, {"chunks": [b"taped"]})] * 2)
        other = inprocesstapes.write_tape(tmp_path / "o.tape.jsonl.gz", (url, {"chunks": [b"other"]}))
        run_asyncio(work)


def test_an_event_loop_is_kept_from_the_network(tape: Path) -> None:
    async def work() -> None:
        with tapeproxy.replay(tape), pytest.raises(OSError, match="was refused"):
            await asyncio.open_connection("elsewhere.test", 80)

    with pytest.raises(TapeViolationError, match=r"elsewhere\.test"):
        asyncio.run(work())
