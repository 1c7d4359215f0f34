from typing import Any

import pytest

from tapeproxy.tapes.conversation import Answer, Answered, Asked, Media, Message, Text, Thought, ToolCall
from tapeproxy.tapes.dialects.ollama import DIALECT


@pytest.mark.parametrize(
    ("path", "body", "messages"),
    [
        (
            "http://h:11434/api/chat",
            {"messages": [{"role": "user", "content": "hi", "images": ["AA"]}]},
            (Message("user", (Text("hi"), Media("image"))),),
        ),
        (
            "http://h:11434/api/generate",
            {"system": "be brief", "prompt": "hi"},
            (Message("system", (Text("be brief"),)), Message("user", (Text("hi"),))),
        ),
        ("http://h:11434/api/generate", {}, ()),
    ],
)
def test_requests(path: str, body: dict[str, Any], messages: tuple[Message, ...]) -> None:
    assert DIALECT.read_request(path, body | {"model": "m"}) == Asked("m", messages)


@pytest.mark.parametrize("path", ["http://h/api/chat", "http://h/api/tags"])
def test_what_is_no_call(path: str) -> None:
    assert DIALECT.read_request(path, {"model": "m"}) is None


def test_a_stream_put_together() -> None:
    lines: tuple[dict[str, Any], ...] = (
        {"model": "m", "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {"model": "m", "message": {"content": "Hel"}, "done": False},
        {
            "model": "m",
            "message": {"content": "lo", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        },
        {"model": "m", "message": {}, "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4},
    )
    parts = (Thought("hm"), Text("Hello"), ToolCall("f", '{"a":1}'))
    assert DIALECT.read_answer(Answer(lines, streamed=True)) == Answered("m", Message("assistant", parts), "stop", 3, 4)
    cut = DIALECT.read_answer(Answer(lines[:2], streamed=True))
    assert cut == Answered("m", Message("assistant", (Thought("hm"), Text("Hel"))))


def test_generate_answers_in_another_field() -> None:
    lines = {"model": "m", "response": "Hel"}, {"model": "m", "response": "lo", "done": True}
    assert DIALECT.read_answer(Answer(lines, streamed=True)).message == Message("assistant", (Text("Hello"),))


def test_an_error() -> None:
    assert DIALECT.read_answer(Answer(({"error": "model not found"},))) == Answered(error="model not found")
