"""Threads and tasks that outlive their replay: they reach neither the network nor another replay."""

import asyncio
import contextlib
import http.client
import shutil
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import aiohttp
import httpx
import pytest
import requests
from origin import Call, Origin

import tapeproxy

URL = "https://api.test/one"


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two tapes of the same request."""
    folder = tmp_path_factory.mktemp("tapes")
    first, second = folder / "first.tape.jsonl.gz", folder / "second.tape.jsonl.gz"

    async def answer(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 4")
        await call.send(b"live")

    with pytest.MonkeyPatch.context() as patch, Origin(answer) as origin:
        patch.setenv("TAPEPROXY_HOME", str(folder / "home"))
        with tapeproxy.record(first, hosts={"api.test": origin.url}):
            httpx.get(URL)
    shutil.copyfile(first, second)
    return first, second


def by_aiohttp() -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session, session.get(URL):
            pass

    asyncio.run(ask())


def by_async_httpx() -> None:
    async def ask() -> None:
        async with httpx.AsyncClient() as client:
            await client.get(URL)

    asyncio.run(ask())


def by_http_client() -> None:
    connection = http.client.HTTPSConnection("api.test", timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/one")
        connection.getresponse()


WAYS: dict[str, Callable[[], object]] = {
    "httpx": lambda: httpx.get(URL),
    "requests": lambda: requests.get(URL, timeout=10),
    "http.client": by_http_client,
    "aiohttp": by_aiohttp,
    "async httpx": by_async_httpx,
    "socket": lambda: socket.create_connection(("192.0.2.1", 443), timeout=10),
}


@pytest.mark.parametrize("meanwhile", ["nothing", "another"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.filterwarnings("ignore::tapeproxy.LateRequestWarning")
def test_a_thread_that_outlives_its_replay_is_refused(
    tapes: tuple[Path, Path], way: Callable[[], object], meanwhile: str
) -> None:
    go, errors = threading.Event(), list[BaseException]()

    def late() -> None:
        assert go.wait(60)
        try:
            way()
        except Exception as error:
            errors.append(error)

    with tapeproxy.replay(tapes[0]) as run:
        assert httpx.get(URL).text == "live"
        thread = threading.Thread(target=late)
        thread.start()
    other: AbstractContextManager[object] = contextlib.nullcontext()
    if meanwhile == "another":
        other = tapeproxy.replay(tapes[1])
    with other as next_run:
        go.set()
        thread.join()
        if isinstance(next_run, tapeproxy.Replay):
            assert httpx.get(URL).text == "live"
            assert len(next_run.exchanges) == 1
    assert len(errors) == 1
    assert [found.kind for found in run.late] == ["egress"]
    assert str(tapes[0]) in run.late[0].what
    assert run.violations == []


def test_it_is_warned_of_and_who_started_nothing_asks_on(tapes: tuple[Path, Path]) -> None:
    """The flow that opened the replay, and a pool that others use when it is over."""
    asked: list[str] = []

    async def answer(call: Call) -> None:
        asked.append(call.request.target)
        await call.head("200 OK", "Content-Length: 4")
        await call.send(b"real")

    def late() -> None:
        with pytest.warns(tapeproxy.LateRequestWarning, match="has asked for this when that was over"):
            httpx.get(URL)

    pool, go = ThreadPoolExecutor(1), threading.Event()
    with Origin(answer) as origin:
        with tapeproxy.replay(tapes[0], match="any", on_drift="report"):
            pool.submit(lambda: httpx.get(URL)).result()
            pool.submit(go.wait, 60)  # so that the next item is taken up when the replay is over
            future = pool.submit(late)
        go.set()
        with pytest.raises(httpx.ConnectError):
            future.result()
        assert httpx.get(f"{origin.url}/flow").text == "real"
        assert pool.submit(lambda: httpx.get(f"{origin.url}/pool").text).result() == "real"
        assert pool.submit(socket.getaddrinfo, "localhost", 80).result()
    pool.shutdown()
    assert asked == ["/flow", "/pool"]


def test_what_outlives_a_recording_is_let_through_and_is_on_no_tape(
    tapes: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path))
    go, got = threading.Event(), list[str]()

    async def answer(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 4")
        await call.send(b"real")

    def late() -> None:
        assert go.wait(60)
        got.append(httpx.get(f"{origin.url}/late").text)

    with Origin(answer) as origin:
        with tapeproxy.record(tmp_path / "new.tape.jsonl.gz", hosts={"api.test": origin.url}):
            thread = threading.Thread(target=late)
            thread.start()
        with tapeproxy.replay(tapes[1]) as run:
            httpx.get(URL)
            go.set()
            thread.join()
    assert got == ["real"]
    assert (run.violations, run.late) == ([], [])
