"""OpenAI Realtime by the real SDK, sync and async: recorded from the fake provider, replayed with it stopped."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from authority import Authority
from bothwires import HOST, BothWires
from recording import Recording
from websockets.exceptions import ConnectionClosed
from wireclients import Way

from tapeproxy.testing import FakeProvider

# The SDK opens a connection in a way that websockets is about to give up.
pytestmark = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")

type Play = Callable[[Way], list[Any]]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[Way], str]:
    """Lead the SDK through a wire, as the agent's environment does; returns its base URL."""

    def lead(way: Way) -> str:
        monkeypatch.setenv("HTTPS_PROXY", way.proxy)
        monkeypatch.setenv("SSL_CERT_FILE", way.cafile)
        return f"https://{HOST}/v1"

    return lead


def talk(base: str, question: str = "hello there") -> list[Any]:
    heard: list[Any] = []
    client = openai.OpenAI(base_url=base, api_key="sk-test-0123456789abcdefghij")
    with client.realtime.connect(model="gpt-realtime") as session:
        heard.append(session.recv().to_dict())
        session.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]}
        )
        session.response.create()
        for event in session:
            heard.append(event.to_dict())
            if event.type == "response.done":
                break
        nonsense: Any = {"type": "nonsense"}
        session.send(nonsense)
        heard.append(session.recv().to_dict())
    return heard


async def speak(base: str) -> list[Any]:
    """Full duplex: sound is sent while the model talks."""
    heard: list[Any] = []
    client = openai.AsyncOpenAI(base_url=base, api_key="sk-test-0123456789abcdefghij")
    async with client.realtime.connect(model="gpt-realtime") as session:
        await session.session.update(session={"type": "realtime", "output_modalities": ["audio"]})

        async def microphone(pieces: int) -> None:
            for piece in range(pieces):
                await session.input_audio_buffer.append(audio=base64.b64encode(bytes([piece]) * 480).decode())

        await microphone(5)
        await session.input_audio_buffer.commit()
        await session.response.create()
        going_on = asyncio.create_task(microphone(40))
        async for event in session:
            heard.append(event.to_dict())
            if event.type == "response.done":
                break
        await going_on
    return heard


def record(wires: BothWires, authority: Authority, tmp: Any, play: Play) -> list[Any]:
    provider = FakeProvider(script={"gap_ms": [0, 1]}, tls=authority.serving("127.0.0.1")).start()
    recording = Recording(tmp, authority, upstream_ca=authority.cert, hosts={HOST: provider.url})
    try:
        with recording:
            heard = play(Way(recording.url, str(authority.cert)))
    finally:
        provider.stop()
    assert recording.wire.failures.count == 0
    wires.tape = recording.tape()
    return heard


@pytest.mark.parametrize("play", [talk, lambda base: asyncio.run(speak(base))], ids=["sync", "async"])
def test_a_session_is_heard_again(
    play: Callable[[str], list[Any]],
    wires: BothWires,
    authority: Authority,
    environment: Callable[[Way], str],
    tmp_path: Any,
) -> None:
    heard = record(wires, authority, tmp_path, lambda way: play(environment(way)))
    assert heard[-1]["type"] in ("response.done", "error")
    assert len({event["type"] for event in heard}) >= 8
    assert wires.replay(lambda way: play(environment(way))) == heard
    exchange = wires.exchange()
    assert exchange.request.url == f"https://{HOST}/v1/realtime?model=gpt-realtime".encode()
    texts = [json.loads(frame.data) for frame in exchange.frames if frame.type == "text"]
    assert {"session.created", "response.create", "response.done"} <= {text["type"] for text in texts}
    assert b"sk-test-0123456789abcdefghij" not in repr(exchange).encode()


def test_another_question_is_a_violation_at_its_place(
    wires: BothWires, authority: Authority, environment: Callable[[Way], str], tmp_path: Any
) -> None:
    record(wires, authority, tmp_path, lambda way: talk(environment(way)))
    with pytest.raises(ConnectionClosed, match="4470"):
        wires.replay_anyhow(lambda way: talk(environment(way), "good morning"))
