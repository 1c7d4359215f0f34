"""Chat completions: requests read, bodies and event sequences exact."""

import random
from typing import Any

import pytest
from sse_reader import parse_events

from tapeproxy.testing import openai_chat
from tapeproxy.testing.chance import EPOCH, Chance
from tapeproxy.testing.conversation import Ask, AskError, Reply, Tool, ToolCall

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1"}]}


def chance() -> Chance:
    return Chance(random.Random(0), EPOCH, varied=False)


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [USER], **fields}


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (body(), "user", "hi"),
        (body(messages=[USER, {"role": "user", "content": [{"type": "text", "text": "a"}]}]), "user", "a"),
        (body(messages=[{"role": "system", "content": "s"}]), "user", ""),
        (body(messages=[USER, CALL, {"role": "tool", "content": "r"}]), "tool_results", ("r",)),
        (body(messages=[USER, CALL, {"role": "tool", "content": [{"text": "r"}]}]), "tool_results", ("r",)),
        (body(messages=[USER, CALL, {"role": "tool", "content": "r"}, USER]), "tool_results", ()),
        (body(tools=[TOOL, {"type": "custom", "custom": {"name": "g"}}]), "tools", (Tool("f", {"type": "object"}),)),
        (body(tools=[TOOL], tool_choice="none"), "tools", ()),
        (body(tools=[TOOL], tool_choice="required"), "must_call", True),
        (body(stream=True), "stream", True),
        (body(stream_options={"include_usage": True}), "include_usage", True),
        (body(response_format={"type": "json_schema", "json_schema": {"schema": {"a": 1}}}), "output_schema", {"a": 1}),
        (body(response_format={"type": "json_object"}), "output_schema", {"type": "object"}),
        (body(response_format={"type": "text"}), "output_schema", None),
    ],
)
def test_read(given: dict[str, Any], field: str, value: object) -> None:
    assert getattr(openai_chat.read(given), field) == value


@pytest.mark.parametrize("missing", ["model", "messages"])
def test_a_request_without_it_is_refused(missing: str) -> None:
    given = body()
    del given[missing]
    with pytest.raises(AskError, match=f"'{missing}'"):
        openai_chat.read(given)


def streamed(ask: Ask, reply: Reply) -> tuple[Any, list[Any]]:
    composed = openai_chat.compose(ask, reply, chance())
    return composed, [data for _, data in parse_events(b"".join(openai_chat.stream(ask, composed, chance())))]


def test_text_sequence() -> None:
    composed, events = streamed(Ask("gpt-4o", {}), Reply("Hello."))
    base = {key: composed[key] for key in ("id", "created", "model", "service_tier", "system_fingerprint")}
    base["object"] = "chat.completion.chunk"
    choice = {"index": 0, "logprobs": None, "finish_reason": None}
    assert events == [
        {**base, "choices": [{**choice, "delta": {"role": "assistant", "content": "", "refusal": None}}]},
        {**base, "choices": [{**choice, "delta": {"content": "Hello."}}]},
        {**base, "choices": [{**choice, "delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    ]


def test_usage_comes_last_when_asked_for_and_is_null_before() -> None:
    composed, events = streamed(Ask("gpt-4o", {"m": "two words"}, include_usage=True), Reply("Hello."))
    assert [event["usage"] for event in events[:-2]] == [None] * 3
    assert events[-2]["choices"] == []
    assert events[-2]["usage"] == composed["usage"]
    assert (composed["usage"]["prompt_tokens"], composed["usage"]["completion_tokens"]) == (2, 2)


def test_tool_call_sequence() -> None:
    reply = Reply(tool_calls=(ToolCall("f", {"city": "Zürich"}), ToolCall("g", {})))
    composed, events = streamed(Ask("gpt-4o", {}), reply)
    calls = composed["choices"][0]["message"]["tool_calls"]
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    starts = [delta["tool_calls"][0] for delta in deltas if "id" in delta.get("tool_calls", [{}])[0]]
    assert deltas[0] == {"role": "assistant", "content": None, "refusal": None, "tool_calls": [starts[0]]}
    emptied = [{**call["function"], "arguments": ""} for call in calls]
    assert starts == [
        {"index": index, **call, "function": function}
        for index, (call, function) in enumerate(zip(calls, emptied, strict=True))
    ]
    pieces = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    arguments = ["".join(one["function"]["arguments"] for one in pieces if one["index"] == n) for n in (0, 1)]
    assert arguments == ['{"city": "Zürich"}', "{}"]
    assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_text_and_tool_call_together() -> None:
    composed, events = streamed(Ask("gpt-4o", {}), Reply("Wait.", (ToolCall("f", {}),)))
    assert composed["choices"][0]["message"]["content"] == "Wait."
    keys = [sorted(event["choices"][0]["delta"]) for event in events[:3]]
    assert keys == [["content", "refusal", "role"], ["content"], ["tool_calls"]]


def test_an_empty_reply_still_says_who_speaks() -> None:
    _, events = streamed(Ask("gpt-4o", {}), Reply())
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert len(events) == 3


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (429, "requests"), (500, "server_error"), (418, None)]
)
def test_refuse(status: int, kind: str | None) -> None:
    error: Any = openai_chat.refuse(status, "", chance())["error"]
    assert error["type"] == (kind or "invalid_request_error")
    assert error["message"]
    assert openai_chat.refuse(status, "own words", chance())["error"] == {**error, "message": "own words"}
