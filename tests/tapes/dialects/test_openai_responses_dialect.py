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
from tapeproxy.tapes.dialects.openai_responses import DIALECT

PATH = "https://api.openai.com/v1/responses"
CALL = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "add", "arguments": '{"a":1}'}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
THOUGHT = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "so"}],
}

ITEMS: list[tuple[dict[str, Any], Message]] = [
    ({"role": "user", "content": "hi"}, Message("user", (Text("hi"),))),
    (
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be kind"}]},
        Message("developer", (Text("be kind"),)),
    ),
    (
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
        Message("user", (Media("image", "image/png 2 characters", "data:image/png;base64,AA"),)),
    ),
    (
        {"role": "user", "content": [{"type": "input_file", "filename": "a.pdf"}, {"type": "scent"}, {}]},
        Message("user", (Media("file", "a.pdf"), Media("scent"), Media("unknown part"))),
    ),
    (CALL, Message("assistant", (ToolCall("add", '{"a":1}', "c1"),))),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        Message("assistant", (ToolCall("sh", "ls", "c"),)),
    ),
    (
        {"type": "web_search_call", "id": "w", "action": {"query": "x"}},
        Message("assistant", (ToolCall("web_search_call", '{"query":"x"}', "w"),)),
    ),
    ({"type": "function_call_output", "call_id": "c1", "output": "3"}, Message("tool", (ToolResult("3", "c1"),))),
    (
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "3"}]},
        Message("tool", (ToolResult("3", "c1"),)),
    ),
    (THOUGHT, Message("assistant", (Thought("hm\nso"),))),
    ({"type": "item_reference", "id": "x"}, Message("assistant", (Media("item_reference"),))),
]


@pytest.mark.parametrize(("item", "expected"), ITEMS)
def test_an_item_of_the_input(item: dict[str, Any], expected: Message) -> None:
    assert DIALECT.read_request(PATH, {"model": "m", "input": [item]}) == Asked("m", (expected,))


def test_instructions_and_a_plain_input() -> None:
    asked = DIALECT.read_request(PATH, {"model": "m", "instructions": "be brief", "input": "hi"})
    assert asked == Asked("m", (Message("system", (Text("be brief"),)), Message("user", (Text("hi"),))))


@pytest.mark.parametrize("body", [{}, {"messages": []}])
def test_what_is_not_a_response_request(body: dict[str, Any]) -> None:
    assert DIALECT.read_request(PATH, body) is None
    assert DIALECT.read_request("https://api.openai.com/v1/responses/r-1/cancel", {"input": ""}) is None


RESPONSE = {
    "model": "m-1",
    "status": "completed",
    "error": None,
    "output": [THOUGHT, SAID, CALL],
    "usage": {"input_tokens": 5, "output_tokens": 6},
}
PARTS: tuple[Part, ...] = (Thought("hm\nso"), Text("Hello"), ToolCall("add", '{"a":1}', "c1"))
STREAM: tuple[dict[str, Any], ...] = (
    {"type": "response.created", "response": {"model": "m-1", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "h"},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "m"},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "so"},
    {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT},
    {"type": "response.output_item.added", "output_index": 1, "item": SAID | {"content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hel"},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "lo"},
    {"type": "response.output_item.added", "output_index": 2, "item": CALL | {"arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a"'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ":1}"},
    {"type": "response.completed", "response": RESPONSE},
)


def test_a_plain_answer() -> None:
    expected = Answered("m-1", Message("assistant", PARTS), "completed", 5, 6)
    assert DIALECT.read_answer(Answer((RESPONSE,))) == expected


def test_the_last_event_carries_the_whole_response() -> None:
    expected = Answered("m-1", Message("assistant", PARTS), "completed", 5, 6)
    assert DIALECT.read_answer(Answer(STREAM, streamed=True)) == expected
    assert DIALECT.read_answer(Answer(STREAM[-1:], streamed=True)) == expected


@pytest.mark.parametrize(
    ("events", "parts"),
    [
        (1, None),
        (3, (Thought("h"),)),
        (5, (Thought("hm\nso"),)),
        (8, (Thought("hm\nso"), Text("Hel"))),
        (11, (Thought("hm\nso"), Text("Hello"), ToolCall("add", '{"a"', "c1"))),
        (12, PARTS),
    ],
)
def test_a_cut_stream_is_put_together_from_its_deltas(events: int, parts: tuple[Part, ...] | None) -> None:
    message = None if parts is None else Message("assistant", parts)
    assert DIALECT.read_answer(Answer(STREAM[:events], streamed=True)) == Answered("m-1", message)


def test_deltas_whose_item_is_missing_still_show() -> None:
    events = {"type": "response.output_text.delta", "delta": "a"}, {"type": "response.refusal.delta", "delta": "no"}
    expected = Message("assistant", (Text("a"), Text("no", refusal=True)))
    assert DIALECT.read_answer(Answer(events, streamed=True)).message == expected


def test_an_incomplete_response_says_why() -> None:
    body = RESPONSE | {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert DIALECT.read_answer(Answer((body,))).stop == "max_output_tokens"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "message": "overloaded", "code": "server_error"},
        {"type": "error", "error": {"message": "overloaded"}},
        {"type": "response.failed", "response": RESPONSE | {"error": {"code": "e", "message": "overloaded"}}},
    ],
)
def test_an_error_in_the_stream(event: dict[str, Any]) -> None:
    answered = DIALECT.read_answer(Answer((*STREAM[:8], event), streamed=True))
    assert (answered.error, answered.model, bool(answered.message)) == ("overloaded", "m-1", True)


def test_tokens_that_were_cached() -> None:
    usage = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 7}, "output_tokens": 1}
    answered = DIALECT.read_answer(Answer(({"object": "response", "output": [], "usage": usage},)))
    assert (answered.tokens_in, answered.tokens_cached) == (9, 7)
