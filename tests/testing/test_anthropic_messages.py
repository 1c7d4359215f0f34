"""Anthropic messages: requests read, bodies and event sequences exact."""

import random
from typing import Any

import pytest
from sse_reader import parse_events

from tapeproxy.testing import anthropic_messages
from tapeproxy.testing.chance import EPOCH, Chance
from tapeproxy.testing.conversation import Ask, AskError, Reply, Tool, ToolCall

USER = {"role": "user", "content": "hi"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}


def chance() -> Chance:
    return Chance(random.Random(0), EPOCH, varied=False)


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 9, "messages": [USER], **fields}


def said(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (body(), "user", "hi"),
        (body(messages=[said({"type": "text", "text": "a"}, {"type": "image"})]), "user", "a"),
        (body(messages=[USER, {"role": "assistant", "content": "x"}]), "user", "hi"),
        (body(messages=[USER, said(RESULT)]), "user", "hi"),
        (body(messages=[USER, said(RESULT)]), "tool_results", ("r",)),
        (body(messages=[USER, said(RESULT), said(RESULT)]), "tool_results", ("r", "r")),
        (body(messages=[USER, said(RESULT, {"type": "text", "text": "and?"})]), "tool_results", ("r",)),
        (body(messages=[USER, said({**RESULT, "content": [{"type": "text", "text": "r"}]})]), "tool_results", ("r",)),
        (body(messages=[USER, said(RESULT), USER]), "tool_results", ()),
        (body(tools=[TOOL, {"type": "web_search_20250305", "name": "w"}]), "tools", (Tool("f", {"type": "object"}),)),
        (body(tools=[TOOL], tool_choice={"type": "any"}), "must_call", True),
        (body(stream=True), "stream", True),
        (body(output_config={"format": {"type": "json_schema", "schema": {"a": 1}}}), "output_schema", {"a": 1}),
    ],
)
def test_read(given: dict[str, Any], field: str, value: object) -> None:
    assert getattr(anthropic_messages.read(given), field) == value


@pytest.mark.parametrize("missing", ["model", "messages", "max_tokens"])
def test_a_request_without_it_is_refused(missing: str) -> None:
    given = body()
    del given[missing]
    with pytest.raises(AskError, match=missing):
        anthropic_messages.read(given)


def streamed(reply: Reply) -> tuple[Any, list[tuple[str, Any]]]:
    ask = Ask("claude", {"messages": "two words"})
    composed = anthropic_messages.compose(ask, reply, chance())
    return composed, parse_events(b"".join(anthropic_messages.stream(ask, composed, chance())))


def named(*events: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(event["type"], event) for event in events]


def opening(composed: dict[str, Any]) -> dict[str, Any]:
    usage = {**composed["usage"], "output_tokens": 1}
    return {"type": "message_start", "message": {**composed, "content": [], "stop_reason": None, "usage": usage}}


def closing(stop_reason: str, output_tokens: int) -> list[dict[str, Any]]:
    usage = {"input_tokens": 2, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    delta = {"stop_reason": stop_reason, "stop_sequence": None, "stop_details": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {**usage, "output_tokens": output_tokens}},
        {"type": "message_stop"},
    ]


def test_text_sequence() -> None:
    composed, events = streamed(Reply("Hello."))
    assert composed["content"] == [{"type": "text", "text": "Hello."}]
    assert events == named(
        opening(composed),
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        *closing("end_turn", 2),
    )


def test_tool_use_without_arguments_sequence() -> None:
    composed, events = streamed(Reply(tool_calls=(ToolCall("f", {}),)))
    (block,) = composed["content"]
    assert events == named(
        opening(composed),
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_stop", "index": 0},
        *closing("tool_use", 3),
    )


def test_text_then_tool_use() -> None:
    composed, events = streamed(Reply("Wait.", (ToolCall("f", {"city": "Zürich"}),)))
    assert [block["type"] for block in composed["content"]] == ["text", "tool_use"]
    started = [data["content_block"] for name, data in events if name == "content_block_start"]
    assert started == [{"type": "text", "text": ""}, {**composed["content"][1], "input": {}}]
    pieces = [data["delta"] for name, data in events if name == "content_block_delta" and data["index"] == 1]
    assert {piece["type"] for piece in pieces} == {"input_json_delta"}
    assert "".join(piece["partial_json"] for piece in pieces) == '{"city": "Zürich"}'
    assert [name for name, _ in events].count("ping") == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
        (418, "invalid_request_error"),
    ],
)
def test_refuse(status: int, kind: str) -> None:
    refused: Any = anthropic_messages.refuse(status, "", chance())
    assert refused["type"] == "error"
    assert refused["error"]["type"] == kind
    assert refused["error"]["message"]
    own: Any = anthropic_messages.refuse(status, "own words", chance())
    assert own["error"] == {"type": kind, "message": "own words"}
