"""Anthropic messages on the wire: request in, `message` object and SSE events out. Decides nothing about the answer.

Shapes follow https://docs.anthropic.com/en/api/messages-streaming and recordings of the real service.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from tapeproxy.testing import sse
from tapeproxy.testing.chance import Chance
from tapeproxy.testing.conversation import (
    Ask,
    AskError,
    Json,
    Reply,
    Tool,
    dumps,
    items_of,
    mapping_of,
    narrow,
    required_list,
    required_model,
    text_of,
)

NAME: str = "anthropic-messages"
PATH: str = "/messages"

_KINDS: Final = {
    400: ("invalid_request_error", "The request is not valid."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "Number of requests has exceeded your per-minute rate limit."),
    529: ("overloaded_error", "Overloaded"),
}


def read(body: Mapping[str, object]) -> Ask:
    """Read a request body; raises AskError."""
    if not isinstance(body.get("max_tokens"), int):
        raise AskError("max_tokens: Field required", fix="send a number of tokens")
    user, results = _read_messages(required_list(body, "messages"))
    tools, must_call = narrow(_tools(body), body.get("tool_choice"))
    wanted = mapping_of(mapping_of(body.get("output_config")).get("format"))
    return Ask(
        model=required_model(body),
        body=body,
        user=user,
        tools=tools,
        must_call=must_call,
        tool_results=results,
        output_schema=mapping_of(wanted["schema"]) if "schema" in wanted else None,
        stream=body.get("stream") is True,
    )


def compose(ask: Ask, reply: Reply, chance: Chance) -> Json:
    """The `message` object that says `reply`."""
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text or not reply.tool_calls else []
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_01{chance.alnum(22)}",
            "name": call.name,
            "input": call.arguments,
            "caller": {"type": "direct"},
        }
        for call in reply.tool_calls
    ]
    return {
        "model": ask.model,
        "id": f"msg_01{chance.alnum(22)}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "tool_use" if reply.tool_calls else "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": ask.input_words,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": reply.words,
            "service_tier": "standard",
        },
    }


def stream(_ask: Ask, message: Json, chance: Chance) -> tuple[bytes, ...]:
    """The named events that carry a composed message."""
    return tuple(map(sse.typed, _events(message, chance)))


def _events(message: Json, chance: Chance) -> Iterator[Json]:
    usage = mapping_of(message["usage"])
    opened = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": opened}
    for index, block in enumerate(items_of(message["content"])):
        yield from _block_events(block, index, chance)
    delta = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    final = {key: usage[key] for key in usage if key.endswith("_tokens")}
    yield {"type": "message_delta", "delta": delta, "usage": final}
    yield {"type": "message_stop"}


def refuse(status: int, message: str, chance: Chance) -> Json:
    """The error body for `status`; an empty `message` means the service's usual words."""
    other = ("api_error", "Internal server error") if status >= 500 else _KINDS[400]
    kind, usual = _KINDS.get(status, other)
    return {
        "type": "error",
        "error": {"type": kind, "message": message or usual},
        "request_id": f"req_01{chance.alnum(22)}",
    }


def headers(chance: Chance) -> tuple[tuple[str, str], ...]:
    """The headers that the service puts on every answer."""
    return (
        ("date", chance.date),
        ("anthropic-organization-id", "00000000-0000-4000-8000-000000000000"),
        ("anthropic-ratelimit-requests-limit", "4000"),
        ("anthropic-ratelimit-requests-remaining", "3999"),
        ("request-id", f"req_01{chance.alnum(22)}"),
    )


def _block_events(block: Json, index: int, chance: Chance) -> Iterator[Json]:
    is_text = block["type"] == "text"
    empty = {**block, "text": ""} if is_text else {**block, "input": {}}
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    if index == 0:
        yield {"type": "ping"}
    deltas = _text_deltas(block, chance) if is_text else _input_deltas(block, chance)
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _text_deltas(block: Json, chance: Chance) -> Iterator[Json]:
    for piece in chance.split_text(str(block["text"])):
        yield {"type": "text_delta", "text": piece}


def _input_deltas(block: Json, chance: Chance) -> Iterator[Json]:
    yield {"type": "input_json_delta", "partial_json": ""}
    if block["input"]:  # a call without arguments has the empty delta only
        for piece in chance.split_json(dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


def _read_messages(messages: list[Json]) -> tuple[str, tuple[str, ...]]:
    """The last user text, and the tool results since; a message may hold both, and then they belong together."""
    user, results = "", list[str]()
    for message in messages:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        found = [text_of(block.get("content")) for block in items_of(content) if block.get("type") == "tool_result"]
        text = text_of(content)
        if text and not found:
            results = []
        user = text or user
        results += found
    return user, tuple(results)


def _tools(body: Mapping[str, object]) -> Iterator[Tool]:
    for tool in items_of(body.get("tools")):
        # The provider's own server tools have a type and no schema; the caller can't answer those.
        if isinstance(name := tool.get("name"), str) and "input_schema" in tool:
            yield Tool(name, mapping_of(tool["input_schema"]))
