from typing import Any

import pytest

from tapeproxy.tapes.conversation import (
    Answer,
    Answered,
    Asked,
    Media,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from tapeproxy.tapes.dialects.openai_chat import DIALECT

PATH = "https://api.openai.com/v1/chat/completions"
FUNCTION = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def delta(**fields: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


MESSAGES: list[tuple[dict[str, Any], Message]] = [
    ({"role": "user", "content": "hi"}, Message("user", (Text("hi"),))),
    ({"role": "assistant", "content": ""}, Message("assistant")),
    ({"role": "assistant", "content": None}, Message("assistant")),
    ({"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}, Message("user", (Text("a"), Text("b")))),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/cat.png"}}]},
        Message("user", (Media("image", "https://x.test/cat.png"),)),
    ),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        Message("user", (Media("image", "image/png 4 characters", "data:image/png;base64,AAAA"),)),
    ),
    (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]},
        Message("user", (Media("audio", "wav"),)),
    ),
    (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "f-1"}}, {"type": "hologram"}, {}]},
        Message("user", (Media("file", "f-1"), Media("hologram"), Media("unknown part"))),
    ),
    (
        {"role": "assistant", "content": "so", "tool_calls": [FUNCTION]},
        Message("assistant", (Text("so"), ToolCall("add", '{"a": 1}', "c1"))),
    ),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "custom": {"name": "sh", "input": "ls"}}]},
        Message("assistant", (ToolCall("sh", "ls", "c"),)),
    ),
    (
        {"role": "assistant", "function_call": {"name": "add", "arguments": "{}"}},
        Message("assistant", (ToolCall("add", "{}"),)),
    ),
    ({"role": "tool", "tool_call_id": "c1", "content": "3"}, Message("tool", (ToolResult("3", "c1"),))),
    ({"role": "function", "name": "add", "content": "3"}, Message("function", (ToolResult("3", "add"),))),
    (
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
        Message("tool", (ToolResult("a\n[image]", "c1"),)),
    ),
    (
        {"role": "assistant", "reasoning_content": "hm", "content": "a", "refusal": "no"},
        Message("assistant", (Thought("hm"), Text("a"), Text("no", refusal=True))),
    ),
]


@pytest.mark.parametrize(("given", "expected"), MESSAGES)
def test_a_message_of_the_request(given: dict[str, Any], expected: Message) -> None:
    assert DIALECT.read_request(PATH, {"model": "m", "messages": [given]}) == Asked("m", (expected,))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("https://api.openai.com/v1/embeddings", {"messages": []}),
        (PATH, {"messages": "hello"}),
        (PATH, {}),
    ],
)
def test_what_is_not_a_chat_completion(path: str, body: dict[str, Any]) -> None:
    assert DIALECT.read_request(path, body) is None


def test_azure_and_others_put_more_before_the_path() -> None:
    path = "https://x.openai.azure.com/openai/deployments/gpt/chat/completions"
    assert DIALECT.read_request(path, {"messages": []}) == Asked(None, ())


def test_a_plain_answer() -> None:
    body = {
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1},
    }
    assert DIALECT.read_answer(Answer((body,))) == Answered("m-1", Message("assistant", (Text("4"),)), "stop", 7, 1)


STREAMS: list[tuple[list[dict[str, Any]], tuple[Part, ...]]] = [
    ([delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo")], (Text("Hello"),)),
    ([delta(reasoning="h"), delta(reasoning="m"), delta(content="a")], (Thought("hm"), Text("a"))),
    ([delta(content="I", refusal=None), delta(refusal="no")], (Text("I"), Text("no", refusal=True))),
    (
        [
            delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}}]),
            delta(tool_calls=[{"index": 1, "id": "c2", "function": {"name": "mul", "arguments": '{"x"'}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]),
            delta(tool_calls=[{"index": 1, "function": {"arguments": ":1}"}}]),
        ],
        (ToolCall("add", "{}", "c1"), ToolCall("mul", '{"x":1}', "c2")),
    ),
    ([delta(tool_calls=[FUNCTION, FUNCTION])], (ToolCall("add", '{"a": 1}', "c1"),) * 2),
    (
        [delta(function_call={"name": "add", "arguments": "{"}), delta(function_call={"arguments": "}"})],
        (ToolCall("add", "{}"),),
    ),
    ([delta(content="a"), {"choices": [{"index": 1, "delta": {"content": "another choice"}}]}], (Text("a"),)),
]


@pytest.mark.parametrize(("deltas", "parts"), STREAMS)
def test_a_stream_put_together(deltas: list[dict[str, Any]], parts: tuple[Part, ...]) -> None:
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}
    answered = DIALECT.read_answer(Answer((*deltas, end, usage), streamed=True))
    assert answered == Answered("m-1", Message("assistant", parts), "stop", 2, 3)


def test_a_cut_stream_gives_what_came_and_no_stop() -> None:
    deltas = delta(content="Hel"), delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": '{"a'}}])
    expected = Message("assistant", (Text("Hel"), ToolCall("f", '{"a')))
    assert DIALECT.read_answer(Answer(deltas, streamed=True)) == Answered("m-1", expected)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"message": "too many", "type": "rate_limit"}, "too many"),
        ({"type": "rate_limit"}, "rate_limit"),
        ({"odd": 1}, '{"odd":1}'),
        ("plain words", "plain words"),
        (None, None),
    ],
)
def test_errors(error: Any, said: str | None) -> None:
    assert DIALECT.read_answer(Answer(({"error": error},))).error == said
    assert DIALECT.read_answer(Answer((delta(content="a"), {"error": error}), streamed=True)).error == said


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 7}}, 7),
        ({"prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 2}, 7),
        ({"cached_tokens": 7}, 7),
        ({"prompt_tokens_details": None}, None),
    ],
)
def test_tokens_that_were_cached(usage: dict[str, Any], cached: int | None) -> None:
    answered = DIALECT.read_answer(Answer(({"choices": [], "usage": {"prompt_tokens": 9} | usage},)))
    assert (answered.tokens_in, answered.tokens_cached) == (9, cached)
