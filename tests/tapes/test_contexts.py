"""What happened to the messages of an LLM call."""

import pytest

from tapeproxy.tapes.contexts import context_changes
from tapeproxy.tapes.conversation import Message, Text, ToolCall, ToolResult

LONG = "The tide comes in twice a day, and goes out twice a day, because of the moon."


def said(*turns: str) -> list[Message]:
    """`u:hello` is a user's message."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return [Message(roles[turn[0]], (Text(turn[2:]),)) for turn in turns]


@pytest.mark.parametrize(
    ("taped", "asked", "changes"),
    [
        (["u:hi"], ["u:hi"], []),
        (["u:hi"], ["u:hi", "a:hello", "u:bye"], [("injected", None, 1), ("injected", None, 2)]),
        (["s:x", "u:1", "a:2", "u:3"], ["s:x", "u:3"], [("dropped", 1, None), ("dropped", 2, None)]),
        (["s:x", "u:hi"], ["s:y", "u:hi"], [("changed", 0, 0)]),
        (["s:x", "u:hi"], ["s:x", "s:new", "u:hi"], [("injected", None, 1)]),
        (["u:hi"], ["a:hi"], [("dropped", 0, None), ("injected", None, 0)]),
        (["u:" + LONG], ["u:" + LONG[:40]], [("truncated", 0, 0)]),
        (["u:" + LONG], ["u:" + LONG[:40] + "…"], [("truncated", 0, 0)]),
        (["u:" + LONG], ["u:" + LONG[:20] + " [truncated] " + LONG[-20:]], [("truncated", 0, 0)]),
        (["u:" + LONG], ["u:" + LONG[30:]], [("truncated", 0, 0)]),
        (["u:" + LONG], ["u:" + LONG[:40] + " and more of it"], [("changed", 0, 0)]),
        (["u:1", "a:2", "u:3"], ["u:1", "a:9", "u:8", "a:7", "u:3"], [("changed", 1, 1)]),
    ],
)
def test_changes_are_told_as_messages(
    taped: list[str], asked: list[str], changes: list[tuple[str, int | None, int | None]]
) -> None:
    found = [(change.kind, change.taped, change.asked) for change in context_changes(said(*taped), said(*asked))]
    assert found[: len(changes)] == changes
    assert bool(found) is bool(changes)


def test_a_changed_message_shows_its_changed_words() -> None:
    (change,) = context_changes(said("s:Answer in English, please."), said("s:Answer in French, please."))
    assert change.text == "Answer in [-English-]{+French+}, please."
    assert change.role == "system"


def test_tools_are_part_of_the_context() -> None:
    taped = [Message("assistant", (ToolCall("tide", '{"city":"Dover"}'),)), Message("tool", (ToolResult("high"),))]
    asked = [Message("assistant", (ToolCall("tide", '{"city":"Calais"}'),)), Message("tool", (ToolResult("low"),))]
    changes = list(context_changes(taped, asked))
    assert [change.kind for change in changes] == ["changed", "changed"]
    assert "[-Dover-]{+Calais+}" in changes[0].text


def test_thousands_of_equal_messages_take_no_time() -> None:
    taped, asked = said(*["u:hi", "a:hi"] * 3000), said(*["a:hi", "u:hi"] * 2900)
    assert len(list(context_changes(taped, asked))) >= 200
