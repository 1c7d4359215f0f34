"""What an LLM request asks for beside its conversation: tools by name, temperature, limits. Any JSON is taken."""

from typing import Any

import orjson

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Call
from tapeproxy.tapes.dialects.shapes import items_of, mapping_of, name_of, written
from tapeproxy.tapes.exchanges import Exchange

# What each dialect reads as part of the conversation.
_CONVERSATION = {
    "openai-chat": {"messages"},
    "openai-responses": {"input", "instructions"},
    "anthropic": {"messages", "system"},
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
        return ", ".join(_tool_name(tool) for tool in items_of(value)) or "none"
    return "null" if value is None else written(value)


def _tool_name(tool: dict[str, Any]) -> str:
    """A tool's name; of a built-in one, which has none, its type."""
    nested = mapping_of(tool.get("function")) or mapping_of(tool.get("custom"))
    return name_of(nested.get("name")) or name_of(tool.get("name")) or name_of(tool.get("type")) or "?"
