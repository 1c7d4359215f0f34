"""WebSockets within this interpreter: recorded and heard again by aiohttp; what is not on the tape is a violation."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
import wstalks
from origin import Origin

import tapeproxy
from tapeproxy.proxy.inprocess.replays import TapeViolationError
from tapeproxy.proxy.tapefile import load


async def talk(*words: str) -> list[str]:
    heard: list[str] = []
    async with aiohttp.ClientSession() as session, session.ws_connect("https://api.test/chat") as socket:
        for word in words:
            await socket.send_str(word)
            heard += [await socket.receive_str(), await socket.receive_str()]
    return heard


def test_a_conversation_is_recorded_and_heard_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    path = tmp_path / "t.tape.jsonl.gz"

    async def work() -> None:
        with Origin(wstalks.accepting(wstalks.echo)) as origin:
            async with tapeproxy.record(path, hosts={"api.test": origin.url}):
                live = await talk("one", "two")
        assert live == ["one", "eno", "two", "owt"]
        async with tapeproxy.replay(path) as run:
            assert await talk("one", "two") == live
            assert list(run.unused) == []
        with pytest.raises(TapeViolationError, match="message 2 of the client on the WebSocket of exchange 1"):
            async with tapeproxy.replay(path):
                with pytest.raises(aiohttp.WSMessageTypeError, match="CLOSE"):
                    await talk("one", "three")

    asyncio.run(work())
    tape, ending = load(path)
    assert ending.sealed
    assert tape.seal is not None and tape.seal.messages
