"""Plain data about a call: tools narrowed, words counted, content read."""

import pytest

from tapeproxy.testing.conversation import Reply, Tool, ToolCall, count_words, narrow, text_of

A, B = Tool("a", {}), Tool("b", {})


@pytest.mark.parametrize(
    ("choice", "left", "must_call"),
    [
        (None, (A, B), False),
        ("auto", (A, B), False),
        ({"type": "auto"}, (A, B), False),
        ("none", (), False),
        ({"type": "none"}, (), False),
        ("required", (A, B), True),
        ({"type": "any"}, (A, B), True),
        ({"type": "tool", "name": "b"}, (B,), True),
        ({"type": "function", "name": "b"}, (B,), True),
        ({"type": "function", "function": {"name": "b"}}, (B,), True),
        ({"type": "tool", "name": "unknown"}, (), True),
    ],
)
def test_narrow(choice: object, left: tuple[Tool, ...], must_call: bool) -> None:
    assert narrow([A, B], choice) == (left, must_call)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", 0),
        ("one, two!", 4),
        ({"a": "one", "b": ["two three", {"c": "four"}]}, 4),
        (5, 0),
        (None, 0),
        ("naïve 日本", 2),
    ],
)
def test_count_words(value: object, words: int) -> None:
    assert count_words(value) == words


def test_a_reply_has_at_least_one_word() -> None:
    assert Reply().words == 1
    assert Reply("one two").words == 2
    assert Reply(tool_calls=(ToolCall("f", {"a": "b"}),)).words > 3


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "input_text", "text": "b"}], "a\nb"),
        (None, ""),
        ([3, {"text": 4}], ""),
    ],
)
def test_text_of(content: object, text: str) -> None:
    assert text_of(content) == text
