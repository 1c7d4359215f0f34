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
from tapeproxy.tapes.dialects.anthropic import DIALECT

PATH = "https://api.anthropic.com/v1/messages"
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-v1%3A0/invoke-with-response-stream"
VERTEX = "https://h/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict"

BLOCKS: list[tuple[Any, tuple[Part, ...]]] = [
    ("hi", (Text("hi"),)),
    ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], (Text("a"), Text("b"))),
    ([{"type": "thinking", "thinking": "hm", "signature": "s"}], (Thought("hm"),)),
    ([{"type": "redacted_thinking", "data": "x"}], (Thought(""),)),
    ([{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}], (ToolCall("add", '{"a":1}', "t1"),)),
    ([{"type": "server_tool_use", "id": "s", "name": "web", "input": {}}], (ToolCall("web", "{}", "s"),)),
    ([{"type": "tool_result", "tool_use_id": "t1", "content": "3"}], (ToolResult("3", "t1"),)),
    (
        [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [{"type": "text", "text": "no"}]}],
        (ToolResult("no", "t1", error=True),),
    ),
    (
        [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}, {"type": "tool_result"}]}],
        (ToolResult("[image]\n[tool_result]", "t"),),
    ),
    ([{"type": "code_execution_tool_result", "content": {"stdout": "1"}}], (ToolResult('{"stdout":"1"}'),)),
    (
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}],
        (Media("image", "image/png 4 characters", "data:image/png;base64,AAAA"),),
    ),
    ([{"type": "image", "source": {"type": "url", "url": "https://x.test/a"}}], (Media("image", "https://x.test/a"),)),
    ([{"type": "document", "source": {"type": "file", "file_id": "f1"}}], (Media("document", "f1"),)),
    ([{"type": "sculpture"}, {}, 7], (Media("sculpture"), Media("unknown block"))),
    (None, ()),
]


@pytest.mark.parametrize(("content", "parts"), BLOCKS)
def test_the_content_of_a_message(content: Any, parts: tuple[Part, ...]) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    assert DIALECT.read_request(PATH, body) == Asked("m", (Message("user", parts),))


@pytest.mark.parametrize("system", ["be brief", [{"type": "text", "text": "be brief"}]])
def test_the_system_prompt_comes_first(system: Any) -> None:
    asked = DIALECT.read_request(PATH, {"model": "m", "system": system, "messages": []})
    assert asked == Asked("m", (Message("system", (Text("be brief"),)),))


@pytest.mark.parametrize(
    ("path", "model"),
    [(BEDROCK, "us.anthropic.claude-v1:0"), (VERTEX, "claude-x"), (VERTEX.replace("streamR", "r"), "claude-x")],
)
def test_a_host_that_names_the_model_in_the_path(path: str, model: str) -> None:
    assert DIALECT.read_request(path, {"anthropic_version": "v", "messages": []}) == Asked(model, ())
    assert DIALECT.read_request(path, {"messages": []}) is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("https://api.openai.com/v1/threads/t/messages", {"content": "hi"}),
        ("https://api.anthropic.com/v1/messages/count_tokens", {"messages": []}),
    ],
)
def test_what_is_not_a_messages_request(path: str, body: dict[str, Any]) -> None:
    assert DIALECT.read_request(path, body) is None


def test_a_plain_answer_counts_the_whole_prompt() -> None:
    body = {
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [{"type": "text", "text": "4"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 100,
            "output_tokens": 2,
        },
    }
    assert DIALECT.read_answer(Answer((body,))) == Answered(
        "m-1", Message("assistant", (Text("4"),)), "end_turn", 113, 2, tokens_cached=100, tokens_written=10
    )


def block_delta(index: int, kind: str, field: str, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}


STREAM: tuple[dict[str, Any], ...] = (
    {
        "type": "message_start",
        "message": {
            "role": "assistant",
            "model": "m-1",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    block_delta(0, "thinking_delta", "thinking", "h"),
    block_delta(0, "thinking_delta", "thinking", "m"),
    block_delta(0, "signature_delta", "signature", "xyz"),
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "H"}},
    block_delta(1, "text_delta", "text", "el"),
    block_delta(1, "text_delta", "text", "lo"),
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t1", "name": "add", "input": {}},
    },
    block_delta(2, "input_json_delta", "partial_json", ""),
    block_delta(2, "input_json_delta", "partial_json", '{"a":'),
    block_delta(2, "input_json_delta", "partial_json", "1}"),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)


@pytest.mark.parametrize(
    ("events", "parts"),
    [
        (1, ()),
        (3, (Thought("h"),)),
        (8, (Thought("hm"), Text("H"))),
        (11, (Thought("hm"), Text("Hello"), ToolCall("add", "{}", "t1"))),
        (13, (Thought("hm"), Text("Hello"), ToolCall("add", '{"a":', "t1"))),
        (16, (Thought("hm"), Text("Hello"), ToolCall("add", '{"a":1}', "t1"))),
    ],
)
def test_a_stream_put_together_as_far_as_it_came(events: int, parts: tuple[Part, ...]) -> None:
    stop, out = ("tool_use", 9) if events == 16 else (None, 1)
    expected = Answered("m-1", Message("assistant", parts), stop, 5, out)
    assert DIALECT.read_answer(Answer(STREAM[:events], streamed=True)) == expected


def test_an_error_alone_and_in_a_stream() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert DIALECT.read_answer(Answer((error,))) == Answered(error="Overloaded")
    answered = DIALECT.read_answer(Answer((*STREAM[:9], error), streamed=True))
    assert answered.error == "Overloaded"
    assert answered.message == Message("assistant", (Thought("hm"), Text("Hel")))
