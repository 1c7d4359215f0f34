"""WebSockets of many runs behind one proxy: each is on the tape of its own run, and heard again from that."""

import asyncio
from pathlib import Path

import pytest
import wstalks
from origin import Origin
from websockets.asyncio.client import connect

from tapeproxy.proxy.manyrecordings import ManyRecordings
from tapeproxy.proxy.manyreplays import ManyReplays
from tapeproxy.proxy.manyruns import ManySettings
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.violations import Drift, Violation


async def talk(url: str, port: int, name: str) -> list[str]:
    async with connect(url, proxy=f"http://{name}:x@127.0.0.1:{port}") as session:
        await session.send(name)
        return [str(await session.recv()), str(await session.recv())]


def test_each_run_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    settings = ManySettings(folder=tmp_path / "tapes", environment={}, cwd="/")
    noticed: list[Violation | Drift] = []

    async def main(url: str) -> None:
        recordings = ManyRecordings(settings, lambda _: None, lambda *_: None)
        await recordings.start()
        try:
            heard = await asyncio.gather(*(talk(url, recordings.port, name) for name in ("left", "right")))
        finally:
            await recordings.stop()
        assert heard == [["left", "tfel"], ["right", "thgir"]]
        replays = ManyReplays(settings, lambda _: None, lambda _, found: noticed.append(found))
        await replays.start()
        try:
            again = await asyncio.gather(*(talk(url, replays.port, name) for name in ("left", "right")))
        finally:
            await replays.stop()
        assert (again, noticed) == (heard, [])

    with Origin(wstalks.accepting(wstalks.echo)) as origin:
        asyncio.run(main(f"ws://127.0.0.1:{origin.port}/same"))
        assert len(origin.requests) == 2
    for name in ("left", "right"):
        (exchange,) = load(tmp_path / "tapes" / f"{name}.tape.jsonl.gz")[0].exchanges
        assert exchange.frames[0].data == name.encode()
        assert exchange.end is not None and exchange.end.how == "complete"
