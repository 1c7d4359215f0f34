"""OpenAI chat completions, and the many servers that speak it; knows its JSON and its stream of deltas.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Iterable, Iterator
from typing import Any

from tapeproxy.tapes.conversation import (
    Answer,
    Answered,
    Asked,
    Dialect,
    Media,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from tapeproxy.tapes.dialects.shapes import (
    count_of,
    error_of,
    items_of,
    locator,
    mapping_of,
    name_of,
    parts_of,
    picture,
    pictures,
    plain_text,
    text_of,
    written,
)
from tapeproxy.tapes.records import Json


def _read_request(path: str, body: Json) -> Asked | None:
    if not path.endswith("/chat/completions") or not isinstance(body.get("messages"), list):
        return None
    return Asked(name_of(body.get("model")), tuple(map(read_message, items_of(body["messages"]))))


def read_message(message: Json) -> Message:
    """A message of the request, or of a choice."""
    role = name_of(message.get("role")) or "assistant"
    parts = parts_of(message.get("content"), _read_part)
    if role in ("tool", "function"):
        call = name_of(message.get("tool_call_id")) or name_of(message.get("name"))
        return Message(role, (ToolResult(plain_text(parts), call, media=pictures(parts)),))
    thought = name_of(message.get("reasoning")) or name_of(message.get("reasoning_content"))
    before: list[Part] = [Thought(thought)] if thought else []
    refusal = name_of(message.get("refusal"))
    after: list[Part] = [Text(refusal, refusal=True)] if refusal else []
    return Message(role, (*before, *parts, *after, *_read_calls(message)))


def _read_part(part: Json) -> Iterator[Part]:
    kind = text_of(part.get("type"))
    match kind:
        case "text":
            yield Text(text_of(part.get("text")))
        case "refusal":
            yield Text(text_of(part.get("refusal")), refusal=True)
        case "image_url":
            image = part.get("image_url")
            url = mapping_of(image).get("url") or image
            yield Media("image", locator(url), picture(url))
        case "input_audio":
            yield Media("audio", text_of(mapping_of(part.get("input_audio")).get("format")))
        case "file":
            file = mapping_of(part.get("file"))
            yield Media("file", text_of(file.get("filename")) or text_of(file.get("file_id")))
        case _:
            yield Media(kind or "unknown part")


def _read_calls(message: Json) -> Iterator[Part]:
    for call in items_of(message.get("tool_calls")):
        yield _read_call(mapping_of(call.get("function")) or mapping_of(call.get("custom")), name_of(call.get("id")))
    legacy = mapping_of(message.get("function_call"))
    if legacy:
        yield _read_call(legacy, None)


def _read_call(function: Json, call_id: str | None) -> ToolCall:
    arguments = function.get("arguments", function.get("input"))
    return ToolCall(text_of(function.get("name")), written(arguments), call_id)


def _read_answer(answer: Answer) -> Answered:
    message: Json | None = None
    model = stop = error = None
    usage: Json = {}
    merger = _Deltas()
    for obj in answer.objects:
        error = error_of(obj) or error
        model = name_of(obj.get("model")) or model
        usage = mapping_of(obj.get("usage")) or usage
        for choice in _first_choices(obj):
            stop = name_of(choice.get("finish_reason")) or stop
            merger.add(mapping_of(choice.get("delta")))
            message = mapping_of(choice.get("message")) or message
    whole = message or merger.message()
    return Answered(
        model,
        read_message(whole) if whole else None,
        stop,
        count_of(usage.get("prompt_tokens")),
        count_of(usage.get("completion_tokens")),
        error,
        _count_cached(usage),
    )


def _count_cached(usage: Json) -> int | None:
    """What was read from the cache: as OpenAI says it, or in the field that DeepSeek or Moonshot have for it."""
    details = mapping_of(usage.get("prompt_tokens_details"))
    given = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    return next((count for value in given if (count := count_of(value)) is not None), None)


def _first_choices(obj: Json) -> Iterable[Json]:
    """The choices number 0: further ones (`n` > 1) are not shown."""
    return (choice for choice in items_of(obj.get("choices")) if choice.get("index", 0) == 0)


class _Deltas:
    """Puts a message together from its deltas: texts are joined, tool calls by their index."""

    def __init__(self) -> None:
        self._role = ""
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, delta: Json) -> None:
        self._role = text_of(delta.get("role")) or self._role
        for key in ("content", "refusal", "reasoning", "reasoning_content"):
            if text := text_of(delta.get(key)):
                self._texts.setdefault(key, []).append(text)
        for call in items_of(delta.get("tool_calls")):
            # Some servers send whole calls, without an index.
            index = call.get("index")
            self._add_call(index if type(index) is int else len(self._calls), call)
        if legacy := mapping_of(delta.get("function_call")):
            self._add_call(-1, {"function": legacy})

    def _add_call(self, index: int, call: Json) -> None:
        seen = self._calls.setdefault(index, {"id": None, "name": "", "arguments": []})
        function = mapping_of(call.get("function")) or mapping_of(call.get("custom"))
        seen["id"] = name_of(call.get("id")) or seen["id"]
        seen["name"] = name_of(function.get("name")) or seen["name"]
        seen["arguments"].append(written(function.get("arguments", function.get("input"))))

    def message(self) -> Json:
        """The message so far, in the form that it has when it isn't streamed; empty when nothing came."""
        if not (self._role or self._texts or self._calls):
            return {}
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": "".join(call["arguments"])}}
            for _, call in sorted(self._calls.items())
        ]
        texts: Json = {key: "".join(texts) for key, texts in self._texts.items()}
        return {"role": self._role or "assistant", "tool_calls": calls} | texts


DIALECT = Dialect("openai-chat", _read_request, _read_answer)
