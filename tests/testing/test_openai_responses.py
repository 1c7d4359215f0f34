"""Responses: requests read, bodies and event sequences exact."""

import random
from typing import Any

import pytest
from sse_reader import parse_events, without_repeats

from tapeproxy.testing import openai_responses
from tapeproxy.testing.chance import EPOCH, Chance
from tapeproxy.testing.conversation import Ask, AskError, Reply, Tool, ToolCall

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "r"}


def chance() -> Chance:
    return Chance(random.Random(0), EPOCH, varied=False)


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "input": [USER], **fields}


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (body(input="hello"), "user", "hello"),
        (body(input=[{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]), "user", "a"),
        (body(input=[USER, {"type": "function_call"}, RESULT]), "tool_results", ("r",)),
        (body(input=[USER, RESULT, USER]), "tool_results", ()),
        (body(input=[RESULT]), "tool_results", ("r",)),
        (body(tools=[TOOL, {"type": "web_search"}]), "tools", (Tool("f", {"type": "object"}),)),
        (body(tools=[TOOL], tool_choice={"type": "function", "name": "f"}), "must_call", True),
        (body(stream=True), "stream", True),
        (body(text={"format": {"type": "json_schema", "schema": {"a": 1}}}), "output_schema", {"a": 1}),
        (body(text={"verbosity": "low"}), "output_schema", None),
    ],
)
def test_read(given: dict[str, Any], field: str, value: object) -> None:
    assert getattr(openai_responses.read(given), field) == value


@pytest.mark.parametrize("missing", ["model", "input"])
def test_a_request_without_it_is_refused(missing: str) -> None:
    given = body()
    del given[missing]
    with pytest.raises(AskError, match=f"'{missing}'"):
        openai_responses.read(given)


def streamed(reply: Reply) -> tuple[Any, list[tuple[str, Any]]]:
    ask = Ask("gpt-5", {"instructions": "Be brief.", "temperature": 0.5})
    composed = openai_responses.compose(ask, reply, chance())
    return composed, parse_events(b"".join(openai_responses.stream(ask, composed, chance())))


def test_the_response_echoes_the_request() -> None:
    composed, _ = streamed(Reply("Hello."))
    assert (composed["instructions"], composed["temperature"], composed["top_p"]) == ("Be brief.", 0.5, 1.0)


def test_text_sequence() -> None:
    composed, events = streamed(Reply("Hello."))
    started = {**composed, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    (item,) = composed["output"]
    at = {"output_index": 0}
    place = {"item_id": item["id"], "content_index": 0, **at}
    part = {"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}
    expected: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": started}),
        ("response.in_progress", {"response": started}),
        ("response.output_item.added", {"item": {**item, "status": "in_progress", "content": []}, **at}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        ("response.output_text.delta", {**place, "delta": "Hello.", "logprobs": []}),
        ("response.output_text.done", {**place, "text": "Hello.", "logprobs": []}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"item": item, **at}),
        ("response.completed", {"response": composed}),
    ]
    assert events == [
        (name, {"type": name, "sequence_number": number, **data}) for number, (name, data) in enumerate(expected)
    ]


def test_tool_call_sequence() -> None:
    composed, events = streamed(Reply(tool_calls=(ToolCall("f", {"city": "Zürich"}),)))
    (item,) = composed["output"]
    assert without_repeats([name for name, _ in events]) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = "".join(data["delta"] for name, data in events if name.endswith("arguments.delta"))
    assert deltas == item["arguments"] == '{"city": "Zürich"}'
    assert events[2][1]["item"] == {**item, "arguments": "", "status": "in_progress"}


def test_text_comes_before_calls_and_each_has_its_index() -> None:
    composed, events = streamed(Reply("Wait.", (ToolCall("f", {}), ToolCall("g", {}))))
    assert [item["type"] for item in composed["output"]] == ["message", "function_call", "function_call"]
    assert without_repeats([str(data["output_index"]) for _, data in events if "output_index" in data]) == [
        "0",
        "1",
        "2",
    ]
