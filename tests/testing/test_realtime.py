"""The fake provider's Realtime sessions: what a client says, and what the service says to it."""

import json
from typing import Any

import pytest

from tapeproxy.testing.answers import Playbook
from tapeproxy.testing.chance import Dice
from tapeproxy.testing.realtime import Session
from tapeproxy.testing.script import read_script

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the weather?"}]}
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}


def session(**script: Any) -> Session:
    opened = Session(Playbook(read_script(script)), Dice(0).roll(b""), "gpt-realtime")
    (created,) = map(json.loads, opened.begin())
    assert (created["type"], created["session"]["model"]) == ("session.created", "gpt-realtime")
    return opened


def say(opened: Session, kind: str, **fields: Any) -> list[dict[str, Any]]:
    return [json.loads(event) for event in opened.hear(json.dumps({"type": kind, **fields}))]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Their types, without those that repeat."""
    found = [event["type"].removeprefix("response.") for event in events]
    return [kind for at, kind in enumerate(found) if found[at - 1 : at] != [kind]]


def test_text_is_said_in_pieces() -> None:
    opened = session(reply=[{"text": "It rains, {user}"}])
    assert kinds(say(opened, "conversation.item.create", item=USER)) == [
        *("conversation.item.added", "conversation.item.done")
    ]
    events = say(opened, "response.create")
    assert kinds(events) == [
        *("created", "output_item.added", "output_text.delta", "output_text.done", "output_item.done", "done")
    ]
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert text == "It rains, the weather?" == events[-1]["response"]["output"][0]["content"][0]["text"]
    assert len({event["event_id"] for event in events}) == len(events)


def test_a_tool_is_called_and_its_result_is_heard() -> None:
    opened = session()
    assert say(opened, "session.update", session={"tools": [TOOL]})[0]["session"]["tools"] == [TOOL]
    say(opened, "conversation.item.create", item=USER)
    events = say(opened, "response.create")
    assert "function_call_arguments.delta" in kinds(events)
    (call,) = events[-1]["response"]["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "12 degrees"}
    say(opened, "conversation.item.create", item=result)
    assert "12 degrees" in say(opened, "response.create")[-1]["response"]["output"][0]["content"][0]["text"]


def test_sound_is_heard_and_made() -> None:
    opened = session(reply=[{"text": "Two words."}])
    say(opened, "session.update", session={"output_modalities": ["audio"]})
    assert say(opened, "input_audio_buffer.append", audio="AAAA") == []
    assert kinds(say(opened, "input_audio_buffer.commit"))[0] == "input_audio_buffer.committed"
    events = say(opened, "response.create")
    assert {"output_audio.delta", "output_audio.done", "output_audio_transcript.done"} <= {*kinds(events)}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('{"type":"nonsense","event_id":"e1"}', "invalid_value"),
        ("not JSON", "invalid_json"),
        (b"\xff", "invalid_json"),
        ("[]", "invalid_json"),
    ],
)
def test_what_is_no_event_is_an_error(said: str | bytes, code: str) -> None:
    (event,) = map(json.loads, session().hear(said))
    assert (event["type"], event["error"]["code"]) == ("error", code)
    assert event["error"]["event_id"] == ("e1" if code == "invalid_value" else None)


def test_a_scripted_error_is_said_in_an_event() -> None:
    opened = session(reply=[{"when": {"api": "openai-realtime"}, "status": 500, "message": "no"}])
    (event,) = say(opened, "response.create")
    assert (event["type"], event["error"]["message"]) == ("error", "no")
