"""Gemini: addresses and requests read, bodies and event sequences exact."""

import json
import random
from typing import Any

import pytest

from tapeproxy.testing import gemini
from tapeproxy.testing.chance import EPOCH, Chance
from tapeproxy.testing.conversation import Ask, AskError, Reply, Tool, ToolCall

USER = {"role": "user", "parts": [{"text": "hi"}]}
CALL = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
DECLARED = {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS = [{"functionDeclarations": [DECLARED]}, {"googleSearch": {}}]
DIALECT = gemini.Gemini("gemini-2.5-flash", streamed=False)


def chance() -> Chance:
    return Chance(random.Random(0), EPOCH, varied=False)


def result(response: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]}


def body(*contents: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"contents": [USER, *contents], **fields}


def calling(**config: Any) -> dict[str, Any]:
    return body(tools=TOOLS, toolConfig={"functionCallingConfig": config})


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash", False),
        ("/v1/publishers/google/models/gemini-3:streamGenerateContent", "gemini-3", True),
    ],
)
def test_an_address_tells_the_model(path: str, model: str, stream: bool) -> None:
    dialect = gemini.at(path)
    assert dialect is not None
    ask = dialect.read(body())
    assert (ask.model, ask.stream) == (model, stream)
    assert path.endswith(dialect.PATH)


@pytest.mark.parametrize(
    "path",
    ["/v1beta/models/m:countTokens", "/v1beta/models/m:generateContent/x", "/v1beta/models/:generateContent", "/"],
)
def test_other_addresses_are_not_geminis(path: str) -> None:
    assert gemini.at(path) is None


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (body(), "user", "hi"),
        ({"contents": [{"parts": [{"text": "no role"}]}]}, "user", "no role"),
        (body(CALL, result({"result": "r"})), "user", "hi"),
        (body(CALL, result({"result": "r"})), "tool_results", ("r",)),
        (body(CALL, result({"a": 1, "b": 2})), "tool_results", ('{"a": 1, "b": 2}',)),
        (body(CALL, result({})), "tool_results", ("",)),
        (body(CALL, result({"result": "r"}), USER), "tool_results", ()),
        (body(tools=TOOLS), "tools", (Tool("f", SCHEMA),)),
        (
            body(tools=[{"functionDeclarations": [{"name": "g", "parametersJsonSchema": SCHEMA}]}]),
            "tools",
            (Tool("g", SCHEMA),),
        ),
        (calling(mode="NONE"), "tools", ()),
        (calling(mode="ANY"), "must_call", True),
        (calling(mode="ANY", allowedFunctionNames=["other"]), "tools", ()),
        (calling(mode="AUTO"), "must_call", False),
        (body(generationConfig={"responseSchema": DECLARED["parameters"]}), "output_schema", SCHEMA),
        (body(generationConfig={"responseMimeType": "application/json"}), "output_schema", {"type": "object"}),
        (body(generationConfig={}), "output_schema", None),
    ],
)
def test_read(given: dict[str, Any], field: str, value: object) -> None:
    assert getattr(DIALECT.read(given), field) == value


@pytest.mark.parametrize("given", [{}, {"contents": []}, {"contents": "hi"}])
def test_a_request_without_contents_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(AskError, match="contents"):
        DIALECT.read(given)


def streamed(reply: Reply) -> tuple[Any, list[Any]]:
    ask = Ask("gemini-2.5-flash", {"contents": "two words"})
    composed = DIALECT.compose(ask, reply, chance())
    events = b"".join(DIALECT.stream(ask, composed, chance())).decode().split("\n\n")
    return composed, [json.loads(event.removeprefix("data: ")) for event in events if event]


def parts_of(response: Any) -> list[Any]:
    (candidate,) = response["candidates"]
    assert candidate["content"]["role"] == "model"
    return list(candidate["content"]["parts"])


def test_text_and_calls() -> None:
    composed, events = streamed(Reply("One two three four five.", (ToolCall("f", {"a": "b"}), ToolCall("g", {}))))
    calls = [{"functionCall": {"name": "f", "args": {"a": "b"}}}, {"functionCall": {"name": "g", "args": {}}}]
    assert parts_of(composed) == [{"text": "One two three four five."}, *calls]
    assert composed["candidates"][0]["finishReason"] == "STOP"
    assert composed["usageMetadata"]["promptTokenCount"] == 2
    pieces = [part for event in events for part in parts_of(event)]
    assert "".join(piece.get("text", "") for piece in pieces) == "One two three four five."
    assert [piece for piece in pieces if "functionCall" in piece] == calls
    assert len(events) > 3
    assert [event["candidates"][0].get("finishReason") for event in events] == [None] * (len(events) - 1) + ["STOP"]
    assert {event["responseId"] for event in events} == {composed["responseId"]}


def test_an_empty_reply_is_one_event() -> None:
    composed, events = streamed(Reply())
    assert parts_of(composed) == [{"text": ""}]
    assert events == [composed]


def test_calls_alone_have_no_text() -> None:
    composed, _ = streamed(Reply(tool_calls=(ToolCall("f", {}),)))
    assert [*parts_of(composed)[0]] == ["functionCall"]


@pytest.mark.parametrize(
    ("status", "name"),
    [(400, "INVALID_ARGUMENT"), (418, "INVALID_ARGUMENT"), (429, "RESOURCE_EXHAUSTED"), (500, "INTERNAL")],
)
def test_refuse(status: int, name: str) -> None:
    error: Any = DIALECT.refuse(status, "", chance())["error"]
    assert (error["code"], error["status"]) == (status, name)
    assert error["message"]
    assert DIALECT.refuse(status, "own words", chance())["error"] == {**error, "message": "own words"}
