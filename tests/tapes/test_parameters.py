import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.conversation import Call
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.parameters import read_parameters
from tapeproxy.tapes.records import Request


def read(body: Any, dialect: str = "openai-chat", model: str = "m") -> list[tuple[str, str]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    exchange = Exchange(1, 1, Request(t=0, method=b"POST", url=b"https://x.test/", body=raw))
    return read_parameters(exchange, Call(dialect, model, ()))


@pytest.mark.parametrize(
    ("dialect", "conversation"),
    [
        ("openai-chat", {"messages": []}),
        ("openai-responses", {"input": "hi", "instructions": "be brief"}),
        ("anthropic", {"messages": [], "system": "be brief"}),
        ("ollama", {"prompt": "hi", "system": "be brief"}),
        ("gemini", {"contents": [], "systemInstruction": {}, "system_instruction": {}}),
        ("bedrock-converse", {"messages": [], "system": []}),
    ],
)
def test_the_conversation_is_left_out_and_the_rest_is_in_order(dialect: str, conversation: dict[str, Any]) -> None:
    given = {"max_tokens": 9, **conversation, "model": "m", "stop": None, "response_format": {"type": "json_object"}}
    assert read(given, dialect) == [
        ("max_tokens", "9"),
        ("stop", "null"),
        ("response_format", '{"type":"json_object"}'),
    ]


def test_the_model_is_told_when_another_one_answered() -> None:
    assert read({"model": "m"}, model="m-2026") == [("model", "m")]


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([{"type": "function", "function": {"name": "search"}}, {"function": {"name": "read"}}], "search, read"),
        ([{"name": "search", "input_schema": {}}], "search"),
        ([{"type": "web_search"}, {"type": "custom", "custom": {"name": "grammar"}}], "web_search, grammar"),
        ([{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}], "a, b, googleSearch"),
        ([{}], "?"),
        ([], "none"),
        ("auto", "auto"),
    ],
)
def test_tools_are_their_names(tools: Any, names: str) -> None:
    assert read({"tools": tools}) == [("tools", names)]


def test_tools_of_bedrock_are_their_names_too() -> None:
    tools = [{"toolSpec": {"name": "search", "inputSchema": {}}}]
    assert read({"toolConfig": {"tools": tools}}) == [("toolConfig", "search")]
    assert read({"toolConfig": {"functionCallingConfig": 1}}) == [("toolConfig", '{"functionCallingConfig":1}')]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_no_object_has_no_parameters(body: bytes) -> None:
    assert read(body) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tools", "name", "function", "type", "x"]), inner)
    ),
)


@given(JSON, st.sampled_from(["openai-chat", "anthropic", "something else"]))
def test_any_json_gives_texts(body: Any, dialect: str) -> None:
    assert all(isinstance(text, str) for _, text in read(body, dialect))
