"""OpenAI responses on the wire: request in, `response` object and SSE events out. Decides nothing about the answer.

Shapes follow https://platform.openai.com/docs/api-reference/responses-streaming and recordings of the real service.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from tapeproxy.testing import openai_errors, sse
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
    required_model,
    text_of,
)

NAME: str = "openai-responses"
PATH: str = "/responses"

headers = openai_errors.headers
refuse = openai_errors.refuse

# What the service reports for parameters that the request left out.
_DEFAULTS: Final[Json] = {
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
    "metadata": {},
}


def read(body: Mapping[str, object]) -> Ask:
    """Read a request body; raises AskError."""
    user, results = _read_input(body.get("input"))
    tools, must_call = narrow(_tools(body), body.get("tool_choice"))
    wanted = mapping_of(mapping_of(body.get("text")).get("format"))
    schema = mapping_of(wanted.get("schema")) if wanted.get("type") == "json_schema" else None
    return Ask(
        model=required_model(body),
        body=body,
        user=user,
        tools=tools,
        must_call=must_call,
        tool_results=results,
        output_schema={"type": "object"} if wanted.get("type") == "json_object" else schema,
        stream=body.get("stream") is True,
    )


def compose(ask: Ask, reply: Reply, chance: Chance) -> Json:
    """The completed `response` object that says `reply`."""
    output = [_message(reply.text, chance)] if reply.text or not reply.tool_calls else []
    output += [
        {
            "id": f"fc_{chance.hexadecimal(48)}",
            "type": "function_call",
            "status": "completed",
            "arguments": dumps(call.arguments),
            "call_id": f"call_{chance.alnum(24)}",
            "name": call.name,
        }
        for call in reply.tool_calls
    ]
    echoed = {key: ask.body[key] for key in _DEFAULTS if ask.body.get(key) is not None}
    return {
        **_DEFAULTS,
        **echoed,
        "id": f"resp_{chance.hexadecimal(48)}",
        "object": "response",
        "created_at": chance.now,
        "completed_at": chance.now + 1,
        "status": "completed",
        "model": ask.model,
        "output": output,
        "text": {"format": {"type": "text"}, "verbosity": "medium", **mapping_of(ask.body.get("text"))},
        "usage": _usage(ask.input_words, reply.words),
    }


def stream(_ask: Ask, response: Json, chance: Chance) -> tuple[bytes, ...]:
    """The named events that carry a composed response, numbered from 0."""
    events = enumerate(_events(response, chance))
    return tuple(sse.typed({**data, "sequence_number": number}) for number, data in events)


def _events(response: Json, chance: Chance) -> Iterator[Json]:
    started = {**response, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item in enumerate(items_of(response["output"])):
        yield from (
            _message_events(item, index, chance) if item["type"] == "message" else _call_events(item, index, chance)
        )
    yield {"type": "response.completed", "response": response}


def _message_events(item: Json, index: int, chance: Chance) -> Iterator[Json]:
    (part,) = items_of(item["content"])
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    yield _item_event("added", index, {**item, "status": "in_progress", "content": []})
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in chance.split_text(str(part["text"])):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}
    yield _item_event("done", index, item)


def _call_events(item: Json, index: int, chance: Chance) -> Iterator[Json]:
    place = {"item_id": item["id"], "output_index": index}
    yield _item_event("added", index, {**item, "status": "in_progress", "arguments": ""})
    for piece in chance.split_json(str(item["arguments"])):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
    yield _item_event("done", index, item)


def _item_event(what: str, index: int, item: Json) -> Json:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": item}


def _message(text: str, chance: Chance) -> Json:
    return {
        "id": f"msg_{chance.hexadecimal(48)}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def _read_input(given: object) -> tuple[str, tuple[str, ...]]:
    if isinstance(given, str):
        return given, ()
    if not isinstance(given, list):
        raise AskError("Missing required parameter: 'input'.", fix="send a string or a list of items")
    user, results = "", list[str]()
    for item in items_of(given):
        if item.get("role") == "user":
            user, results = text_of(item.get("content")), []
        elif item.get("type") == "function_call_output":
            results.append(text_of(item.get("output")))
    return user, tuple(results)


def _tools(body: Mapping[str, object]) -> Iterator[Tool]:
    for tool in items_of(body.get("tools")):
        if tool.get("type") == "function" and isinstance(name := tool.get("name"), str):
            yield Tool(name, mapping_of(tool.get("parameters")))


def _usage(given: int, said: int) -> Json:
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + said,
    }
