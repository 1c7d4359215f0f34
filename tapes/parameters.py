"""What an LLM request asks for beside its conversation: tools by name, temperature, limits. Any JSON is taken."""

from typing import Any

import orjson

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Call
from tapeproxy.tapes.dialects.shapes import mapping_of, written
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.toollists import declared, tool_name

# What each dialect reads as part of the conversation.
_CONVERSATION = {
    "openai-chat": {"messages"},
    "openai-responses": {"input", "instructions"},
    "anthropic": {"messages", "system"},
    "gemini": {"contents", "systemInstruction", "system_instruction"},
    "bedrock-converse": {"messages", "system"},
    "ollama": {"messages", "system", "prompt"},
}
_TOOLS = ("tools", "functions")


def read_parameters(exchange: Exchange, call: Call) -> list[tuple[str, str]]:
    """The other fields of the request that `call` was read from, as (name, text), in their order.

    Of tools only the names. The model is left out where the call names it already. Never raises.
    """
    try:
        request = mapping_of(orjson.loads(decode(exchange.request_body, exchange.request.headers).data))
    except orjson.JSONDecodeError:
        return []
    known = _CONVERSATION.get(call.dialect, set[str]()) | ({"model"} if request.get("model") == call.model else set())
    return [(name, _words(name, value)) for name, value in request.items() if name not in known]


def _words(name: str, value: Any) -> str:
    if name in _TOOLS and isinstance(value, list):
        return ", ".join(tool_name(tool) or "?" for tool in declared({"tools": value})) or "none"
    if name == "toolConfig" and (tools := declared({name: value})):  # Bedrock's, which has the tools in it
        return ", ".join(tool_name(tool) or "?" for tool in tools)
    return "null" if value is None else written(value)
