"""OpenAI chat completions on the wire: request in, JSON body and SSE events out. Decides nothing about the answer.

Shapes follow https://platform.openai.com/docs/api-reference/chat and recordings of the real service.
"""

from collections.abc import Iterator, Mapping

from tapeproxy.testing import openai_errors, sse
from tapeproxy.testing.chance import Chance
from tapeproxy.testing.conversation import (
    Ask,
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

NAME: str = "openai-chat"
PATH: str = "/chat/completions"

headers = openai_errors.headers
refuse = openai_errors.refuse


def read(body: Mapping[str, object]) -> Ask:
    """Read a request body; raises AskError."""
    user, results = "", list[str]()
    for message in required_list(body, "messages"):
        if message.get("role") == "user":
            user, results = text_of(message.get("content")), []
        elif message.get("role") == "tool":
            results.append(text_of(message.get("content")))
    tools, must_call = narrow(_tools(body), body.get("tool_choice"))
    return Ask(
        model=required_model(body),
        body=body,
        user=user,
        tools=tools,
        must_call=must_call,
        tool_results=tuple(results),
        output_schema=_output_schema(body),
        stream=body.get("stream") is True,
        include_usage=mapping_of(body.get("stream_options")).get("include_usage") is True,
    )


def compose(ask: Ask, reply: Reply, chance: Chance) -> Json:
    """The `chat.completion` object that says `reply`."""
    calls = [
        {
            "id": f"call_{chance.alnum(24)}",
            "type": "function",
            "function": {"name": call.name, "arguments": dumps(call.arguments)},
        }
        for call in reply.tool_calls
    ]
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": f"chatcmpl-{chance.alnum(29)}",
        "object": "chat.completion",
        "created": chance.now,
        "model": ask.model,
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": _usage(ask.input_words, reply.words),
        "service_tier": "default",
        "system_fingerprint": f"fp_{chance.hexadecimal(10)}",
    }


def stream(ask: Ask, completion: Json, chance: Chance) -> tuple[bytes, ...]:
    """The events that carry a composed completion: role, content or tool calls in pieces, finish, usage, [DONE]."""
    return (*map(sse.event, _chunks(ask, completion, chance)), sse.DONE)


def _chunks(ask: Ask, completion: Json, chance: Chance) -> Iterator[Json]:
    base = {key: completion[key] for key in ("id", "created", "model", "service_tier", "system_fingerprint")}
    base["object"] = "chat.completion.chunk"
    if ask.include_usage:
        base["usage"] = None
    (choice,) = items_of(completion["choices"])
    message = mapping_of(choice["message"])
    for delta in _deltas(message, chance):
        yield {**base, "choices": [_chunk_choice(delta)]}
    yield {**base, "choices": [_chunk_choice({}, choice["finish_reason"])]}
    if ask.include_usage:
        yield {**base, "choices": [], "usage": completion["usage"]}


def _deltas(message: Json, chance: Chance) -> Iterator[Json]:
    opening: Json = {"role": "assistant", "content": None, "refusal": None}
    content = message["content"]
    if isinstance(content, str):
        yield {**opening, "content": ""}
        opening = {}
        for piece in chance.split_text(content):
            yield {"content": piece}
    for index, call in enumerate(items_of(message.get("tool_calls"))):
        function = mapping_of(call["function"])
        # The first call shares its chunk with the role when there is no text, as the service does.
        yield {**opening, "tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]}
        opening = {}
        for piece in chance.split_json(str(function["arguments"])):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    if opening:
        yield {**opening, "content": ""}


def _chunk_choice(delta: Json, finish_reason: object = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _tools(body: Mapping[str, object]) -> Iterator[Tool]:
    for tool in items_of(body.get("tools")):
        function = mapping_of(tool.get("function"))
        if isinstance(name := function.get("name"), str):
            yield Tool(name, mapping_of(function.get("parameters")))


def _output_schema(body: Mapping[str, object]) -> Json | None:
    wanted = mapping_of(body.get("response_format"))
    if wanted.get("type") == "json_schema":
        return mapping_of(mapping_of(wanted.get("json_schema")).get("schema"))
    return {"type": "object"} if wanted.get("type") == "json_object" else None


def _usage(prompt: int, completion: int) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
