import gzip
import json
import struct
from typing import Any

import cassettes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.calls import read_answer, read_call
from tapeproxy.tapes.conversation import Call, Message, Text, ToolCall, ToolResult
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import Request, Response

CHAT = "https://api.openai.com/v1/chat/completions"
PATHS = [
    CHAT,
    "https://api.openai.com/v1/responses",
    "https://api.anthropic.com/v1/messages",
    "https://h/model/m/invoke",
    "https://h/model/m/converse",
    "https://h/v1beta/models/m:streamGenerateContent",
    "http://h/api/chat",
    "http://h/api/generate",
]
TYPES = [
    "application/json",
    "text/event-stream",
    "application/x-ndjson",
    "application/vnd.amazon.eventstream",
    "",
]


def exchange(url: str, asked: Any, answer: bytes | None, kind: str = "application/json", status: int = 200) -> Exchange:
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    request = Request(t=0, method=b"POST", url=url.encode(), body=body)
    if answer is None:
        return Exchange(1, 1, request)
    response = Response(t=1, of=1, status=status, headers=((b"Content-Type", kind.encode()),))
    return Exchange(1, 1, request, response, [Chunk(2, answer)])


ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
DELTAS = [{"choices": [{"delta": {"content": text}}]} for text in ("Hel", "lo")]
SSE = b"".join(b": ping\n\ndata: " + json.dumps(delta).encode() + b"\n\n" for delta in DELTAS) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (SSE, "text/event-stream; charset=utf-8", "Hello"),
        (SSE, "", "Hello"),
        (SSE.replace(b"\n", b"\r\n"), "text/event-stream", "Hello"),
        (gzip.compress(SSE), "text/event-stream", "Hello"),
        (SSE[:-40], "", "Hel"),
        (b"\n".join(json.dumps(delta).encode() for delta in DELTAS), "application/x-ndjson", "Hello"),
        (b"\n".join(json.dumps(delta).encode() for delta in DELTAS), "", "Hello"),
        (json.dumps(DELTAS, indent=1).encode(), "application/json", "Hello"),
        (json.dumps([*DELTAS, {"cut": "}]"}]).encode()[:-4], "application/json", "Hello"),
        (json.dumps(DELTAS).encode()[:-6], "", "Hel"),
    ],
    ids=[
        *("SSE", "no type", "CRLF", "gzip and no header", "cut", "ndjson", "ndjson, no type"),
        *("list", "list, cut in a string", "list, cut"),
    ],
)
def test_a_stream_in_any_framing(body: bytes, kind: str, text: str) -> None:
    call = read_call(exchange(CHAT, ASKED, body, kind))
    assert call is not None
    assert call.streamed
    assert call.answer is not None
    assert call.answer.text == text


def test_an_answer_that_never_came_leaves_the_question() -> None:
    assert read_call(exchange(CHAT + "?api-version=1", ASKED, None)) == Call(
        "openai-chat", "m", (Message("user", (Text("hi"),)),)
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "slow down"}}', "slow down"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"message": "Forbidden"}', "Forbidden"),
        (b"<html>Bad Gateway</html>", "HTTP status 503"),
        (b"", "HTTP status 503"),
    ],
)
def test_what_a_failure_says(body: bytes, said: str) -> None:
    call = read_call(exchange(CHAT, ASKED, body, status=503))
    assert call is not None
    assert (call.error, call.answer) == (said, None)


@pytest.mark.parametrize("asked", [b"", b"hi", b"[1]", b'"x"', b"\xff\xfe", b"{", b'{"messages": 1}', b'{"a":' * 2000])
def test_a_request_that_is_no_call(asked: bytes) -> None:
    assert read_call(exchange(CHAT, asked, b"{}")) is None


def aws_message(payload: bytes) -> bytes:
    return struct.pack(">III", 12 + 3 + len(payload) + 4, 3, 0) + b"hdr" + payload + b"\0\0\0\0"


def test_an_aws_event_stream_is_read_up_to_where_it_was_cut() -> None:
    body = aws_message(b'{"bytes": "eyJhIjoxfQ=="}') + aws_message(b'{"b": 2}') + aws_message(b'{"bytes": "?"}')
    kind = "application/vnd.amazon.eventstream"
    assert read_answer(exchange("http://h/", b"", body, kind)).objects == ({"a": 1}, {"b": 2}, {"bytes": "?"})
    for cut in range(len(body)):
        objects = read_answer(exchange("http://h/", b"", body[:cut], kind)).objects
        assert objects == ({"a": 1}, {"b": 2})[: len(objects)]


KEYS = st.sampled_from(
    [
        "messages",
        "input",
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "model",
        "choices",
        "delta",
        "message",
        "index",
        "finish_reason",
        "usage",
        "error",
        "prompt_tokens",
        "output",
        "item",
        "summary",
        "response",
        "output_index",
        "content_index",
        "content_block",
        "source",
        "data",
        "image_url",
        "system",
        "instructions",
        "prompt",
        "call_id",
        "anthropic_version",
        "input_tokens",
        "tool_use_id",
        "partial_json",
        "thinking",
        *("contents", "parts", "functionCall", "functionResponse", "inlineData", "candidates", "systemInstruction"),
        *("toolUse", "toolResult", "reasoningContent", "image", "contentBlockIndex", "start", "usageMetadata"),
    ]
)
KINDS = st.sampled_from(
    [
        "text",
        "message",
        "tool_use",
        "tool_result",
        "image",
        "thinking",
        "content_block_start",
        "content_block_delta",
        "message_start",
        "message_delta",
        "text_delta",
        "input_json_delta",
        "response.output_item.added",
        "response.output_text.delta",
        "error",
        "response.function_call_arguments.delta",
        "response.completed",
        "function_call",
        "reasoning",
        "tool",
        "assistant",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.dictionaries(KEYS, JSON | KINDS, max_size=7)


@given(st.sampled_from(PATHS), st.sampled_from(TYPES), OBJECTS, st.lists(JSON | OBJECTS, max_size=4))
def test_any_json_gives_a_call_or_none(path: str, kind: str, asked: dict[str, Any], answers: list[Any]) -> None:
    asked = {"messages": [asked], "input": [asked], "contents": [asked], "anthropic_version": ""} | asked
    lines = [json.dumps(answer).encode() for answer in answers]
    for body in (
        b"\n".join(lines),
        b"[" + b",".join(lines),
        b"".join(b"data: " + line + b"\n\n" for line in lines),
        *lines,
    ):
        call = read_call(exchange(path, asked, body, kind))
        assert call is None or isinstance(call.dialect, str)


@given(st.sampled_from(PATHS), st.sampled_from(TYPES), st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_give_a_call_or_none(path: str, kind: str, asked: bytes, answer: bytes) -> None:
    read_call(exchange(path, asked, answer, kind))
    read_call(exchange(path, {"messages": [], "input": "", "contents": [], "anthropic_version": ""}, answer, kind))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["tool_result", "tool_use", "message", "function_call_output"])
def test_json_nested_deeply_is_no_danger(path: str, kind: str) -> None:
    field = {"tool_use": "input", "function_call_output": "output"}.get(kind, "content")
    deep: Any = []
    for _ in range(480):
        deep = [{"type": kind, field: deep}]
    asked = {"messages": deep, "input": deep, "system": deep, "contents": deep, "anthropic_version": ""}
    answer = {"type": "message", "content": deep, "output": deep, "message": deep[0]}
    call = read_call(exchange(path, asked, json.dumps(answer).encode()))
    assert call is not None


# What the recordings hold, by hand: dialect, model that answered, tokens in and out, stop, the answer's words.
RECORDED = [
    (
        "llm-anthropic__test_tools",
        1,
        "anthropic",
        "claude-haiku-4-5-20251001",
        678,
        82,
        "end_turn",
        "Here are two great",
    ),
    ("file_lifecycle", 1, "anthropic", "claude-sonnet-4-6", 1639, 4, "end_turn", "ok"),
    ("bedrock", 1, "anthropic", "claude-sonnet-4-5-20250929", 625, 9, "end_turn", "2024-01-01"),
    ("openai_tool_variations", 1, "openai-chat", "gpt-5.4-2026-03-05", 177, 13, "stop", "It is 2024-01-01."),
    ("mcp_tool", 6, "openai-responses", "gpt-5.4-2026-03-05", 91, 10, "completed", "2024-01-01"),
    ("portkey", 0, "openai-chat", "gpt-4o-mini-2024-07-18", 12, 51, "stop", "I don't have real-time"),
    ("ollama", 0, "ollama", "llama3", 17, 63, "stop", "Here's one:\n\nWhy did the OpenTelemetry collector"),
    ("llamaindex", 2, "openai-chat", "gpt-4o-2024-08-06", None, None, "stop", "Albert Einstein was born in Ulm"),
    ("langchain", 1, "openai-chat", "gpt-3.5-turbo-0125", 120, 19, "stop", "The result of the expression"),
    ("multi_tool_streaming", 1, "openai-chat", "moonshotai/kimi-k2.5-0127", 197, 80, "stop", " Here are the results"),
]


@pytest.mark.parametrize(("name", "at", "dialect", "model", "tokens_in", "tokens_out", "stop", "words"), RECORDED)
def test_a_recorded_call(
    name: str, at: int, dialect: str, model: str, tokens_in: int | None, tokens_out: int | None, stop: str, words: str
) -> None:
    call = read_call(cassettes.load_exchanges(name)[at])
    assert call is not None
    assert call.answer is not None
    assert (call.dialect, call.model, call.stop, call.error) == (dialect, model, stop, None)
    assert (call.tokens_in, call.tokens_out) == (tokens_in, tokens_out)
    assert call.answer.text.startswith(words)


def test_a_recorded_tool_loop() -> None:
    first, second = (read_call(item) for item in cassettes.load_exchanges("multi_tool_streaming"))
    assert first is not None
    assert second is not None
    assert first.answer is not None
    calls = [part for part in first.answer.parts if isinstance(part, ToolCall)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("add", {"a": 2, "b": 3}),
        ("multiply", {"a": 2, "b": 3}),
    ]
    results = [part for message in second.messages for part in message.parts if isinstance(part, ToolResult)]
    assert [(result.id, result.text) for result in results] == [(calls[0].id, "5"), (calls[1].id, "6")]


@pytest.mark.parametrize("name", ["openrouter_errors_raised", "tool_use_failed"])
def test_recorded_errors(name: str) -> None:
    call = read_call(cassettes.load_exchanges(name)[0])
    assert call is not None
    assert call.answer is None
    assert call.error is not None
    assert call.error.startswith(("Provider returned error", "Tool call validation failed"))


@pytest.mark.parametrize("name", [*cassettes.names(".yaml"), *cassettes.names(".har")])
def test_no_cut_of_a_recording_raises(name: str) -> None:
    for item in cassettes.load_exchanges(name):
        body = item.response_body
        for part in range(9):
            item.chunks = [Chunk(None, body[: len(body) * part // 9])]
            read_call(item)
