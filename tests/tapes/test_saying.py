"""What each chunk of an answer, or message of a WebSocket, adds to what a model says."""

import json
from typing import Any

import agentruns
import pytest
from difftapes import Ask, run, streamed
from wstapes import socket_exchange

from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.saying import words_by_chunk, words_of_message

ASKED = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


def delta(index: int, **fields: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


BLOCKS = (
    {"type": "message_start", "message": {"model": "claude"}},
    delta(0, type="thinking_delta", thinking="Hm."),
    delta(1, type="text_delta", text="One"),
    delta(1, type="text_delta", text=", two"),
    delta(2, type="text_delta", text="Three"),
)
ANTHROPIC = Ask(
    None, "https://api.anthropic.com/v1/messages", ASKED | {"max_tokens": 9}, stream=tuple(agentruns.sse(*BLOCKS))
)
OLLAMA = Ask(
    *(None, "http://127.0.0.1:11434/api/chat", ASKED),
    stream=tuple(json.dumps({"message": {"content": text}}).encode() + b"\n" for text in ("a", "b")),
)
CUT = (
    b'data: {"choices": [{"delta": {"con',
    b'tent": "x"}}]}\n',
    b'\ndata: {"choices": [{"delta": {"content": "y"}}]}',
)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (streamed(None, "?", "This", " that."), ["This", " that.", "", ""]),
        (ANTHROPIC, ["", "", "One", ", two", "\nThree", ""]),
        (OLLAMA, ["a", "b"]),
        (Ask(None, "https://api.openai.com/v1/chat/completions", ASKED, stream=CUT), ["", "", "xy"]),
        (Ask(None, "https://service.test/s", ASKED, stream=CUT), ["", "", ""]),
        (Ask(None, "https://service.test/s"), []),
    ],
    ids=["chat", "anthropic", "ollama", "cut by chunks", "no model's", "nothing"],
)
def test_each_chunk_says_what_it_adds(ask: Ask, words: list[str]) -> None:
    exchange = run(ask).exchanges[0]
    assert words_by_chunk(exchange, [chunk.data for chunk in exchange.chunks]) == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('<{"type":"response.output_text.delta","delta":"a"}', "a"),
        ('<{"type":"response.audio_transcript.delta","delta":"b"}', "b"),
        ('<{"type":"response.audio.delta","delta":"UklGRg=="}', ""),
        ('<{"type":"response.text.delta","delta":7}', ""),
        ('>{"type":"response.text.delta","delta":"mine"}', ""),
        ('<["response.text.delta"]', ""),
        ("<.delta", ""),
    ],
)
def test_a_message_of_a_realtime_api_says_what_it_adds(said: str, words: str) -> None:
    (message,) = read_frames(socket_exchange(said).frames)
    assert words_of_message(message) == words
