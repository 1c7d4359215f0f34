"""Updates within this interpreter: what is on the tape comes from it, what isn't from a real server."""

import asyncio
import os
import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from origin import Call, Origin

import tapeproxy
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.errors import UsageError

SECRET = "a-secret-of-this-test-4711"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TEST_API_KEY", SECRET)


class World(list[str]):
    """What was asked of it."""

    hosts: dict[str, str]


@pytest.fixture
def world() -> Iterator[World]:
    asked = World()

    async def answer(call: Call) -> None:
        asked.append(call.request.target)
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(call.request.target.encode())
        await call.last_chunk()

    with Origin(answer) as running:
        asked.hosts = {"api.test": running.url}
        yield asked


def get(path: str) -> str:
    return httpx.get(f"https://api.test{path}", headers={"x-api-key": SECRET}).text


def drawn(middle: str) -> list[str]:
    """Requests that have chance in them, and one that may be changed."""
    return [get(f"/{uuid.uuid4()}"), get(middle), get(f"/{random.random()}")]


def test_chance_is_the_tape_s_and_only_what_changed_is_asked(tmp_path: Path, world: World) -> None:
    old, new = tmp_path / "old.gz", tmp_path / "new.gz"
    get_once = httpx.Client()  # what clients do but once is not on the tape
    get_once.close()
    with tapeproxy.record(old, hosts=world.hosts):
        before = drawn("/middle")
    world.clear()
    with tapeproxy.update(new, of=old, hosts=world.hosts) as run:
        after = drawn("/changed")
    assert world == ["/changed"]
    assert (before[0], before[2]) == (after[0], after[2])
    assert (run.forked.reused, run.forked.live, run.changed) == (2, 1, True)
    assert [one.request.source for one in load(new)[0].exchanges] == ["reused", "live", "reused"]
    with tapeproxy.replay(new) as replayed:
        assert drawn("/changed") == after
    assert not replayed.unused
    assert world == ["/changed"]


def test_a_coroutine_s_update_and_one_in_which_nothing_changed(tmp_path: Path, world: World) -> None:
    old, new = tmp_path / "old.gz", tmp_path / "new.gz"

    async def work(path: str) -> str:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"https://api.test{path}")).text

    async def recorded() -> None:
        async with tapeproxy.record(old, hosts=world.hosts):
            await work("/one")

    async def updated(path: str) -> "tapeproxy.Update":
        async with tapeproxy.update(new, of=old, hosts=world.hosts) as run:
            assert await work(path) == path
        return run

    asyncio.run(recorded())
    run = asyncio.run(updated("/one"))
    assert (run.forked.reused, run.forked.live) == (1, 0)
    assert asyncio.run(updated("/two")).forked.live == 1
    assert world == ["/one", "/two"]


def test_without_the_key_nothing_goes_out(tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old.gz"
    with tapeproxy.record(old, hosts=world.hosts):
        get("/one")
    monkeypatch.delenv("TEST_API_KEY")
    with pytest.raises(tapeproxy.TapeViolationError, match="holds the placeholder of a secret"):  # noqa: SIM117
        with tapeproxy.update(tmp_path / "new.gz", of=old, hosts=world.hosts):
            httpx.get("https://api.test/two", headers={"x-api-key": os.environ["TEST_API_KEY"]})
    assert "TEST_API_KEY" not in os.environ
    assert world == ["/one"]


def test_a_new_tape_is_not_written_over_the_old_one(tmp_path: Path, world: World) -> None:
    old = tmp_path / "old.gz"
    with tapeproxy.record(old, hosts=world.hosts):
        get("/one")
    (tmp_path / "link.gz").symlink_to(old)
    before = old.read_bytes()
    with pytest.raises(UsageError, match="not written over the one that it is made of"):
        tapeproxy.update(tmp_path / "link.gz", of=old)
    assert old.read_bytes() == before
