"""What was said, as OpenTelemetry's GenAI conventions have it: messages of parts, instructions, definitions of tools.

https://github.com/open-telemetry/semantic-conventions-genai/tree/main/model/gen-ai
"""

from typing import Any, Final

from tapeproxy.tapes.conversation import Answered, Asked, Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.dialects.shapes import mapping_of, name_of
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.toollists import declared

_APART: Final = frozenset({"system", "instructions", "systemInstruction", "system_instruction"})
"""Fields that instructions have of their own."""


def said(body: Json, asked: Asked, answered: Answered) -> dict[str, Any]:
    """What was said. Instructions that are a field of the request of their own are not part of the conversation."""
    messages = asked.messages
    apart = messages[:1] if body.keys() & _APART and messages[:1] and messages[0].role == "system" else ()
    tools = [
        {"type": name_of(one.get("type")) or "function", "name": name}
        for one in declared(body)
        if (
            name := name_of(mapping_of(one.get("function") or one.get("toolSpec")).get("name"))
            or name_of(one.get("name"))
        )
    ]
    return {
        "gen_ai.system_instructions": [_part(part) for message in apart for part in message.parts] or None,
        "gen_ai.input.messages": [_message(message) for message in messages[len(apart) :]] or None,
        "gen_ai.output.messages": None if answered.message is None else [_message(answered.message)],
        "gen_ai.tool.definitions": tools or None,
    }


def _message(message: Message) -> Json:
    return {"role": message.role, "parts": [_part(part) for part in message.parts]}


def _part(part: Part) -> Json:
    match part:
        case Text():
            return {"type": "refusal" if part.refusal else "text", "content": part.text}
        case Thought():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            said = {"type": "tool_call", "name": part.name, "arguments": parsed(part.arguments)}
            return said | ({"id": part.id} if part.id else {})
        case ToolResult():
            return {"type": "tool_call_response", "response": part.text} | ({"id": part.id} if part.id else {})
        case Media():
            return {"type": part.kind} | ({"detail": part.detail} if part.detail else {})


def parsed(text: str) -> Any:
    """The value of a JSON text; what is none stays text."""
    value, is_json = read_json(text.encode("utf-8", "surrogatepass"))
    return value if is_json else text
