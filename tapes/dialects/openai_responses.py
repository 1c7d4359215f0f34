"""OpenAI responses; knows its items and the events of its stream.

The last event of a stream carries the whole response; one that was cut is put together from what came before.
https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
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
    picture_of,
    pictures,
    plain_text,
    text_of,
    written,
)
from tapeproxy.tapes.records import Json

# What a delta adds to, by the event that brings it: the part's list, the new part, the field.
_DELTAS = {
    "response.output_text.delta": ("content", "output_text", "text"),
    "response.refusal.delta": ("content", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text", "text"),
}
_CALL_DELTAS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}


def _read_request(path: str, body: Json) -> Asked | None:
    if not path.endswith("/responses") or not ("input" in body or "prompt" in body):
        return None
    given = body.get("input")
    first = [Message("system", (Text(system),))] if (system := name_of(body.get("instructions"))) else []
    if isinstance(given, str):
        messages = [Message("user", (Text(given),))]
    else:
        messages = [message for item in items_of(given) if (message := _read_item(item)) is not None]
    return Asked(name_of(body.get("model")), (*first, *messages))


def _read_item(item: Json) -> Message | None:
    """One item of the input or the output, as a message of its own."""
    kind = text_of(item.get("type"))
    if kind == "message" or (not kind and "role" in item):
        return Message(text_of(item.get("role")) or "assistant", parts_of(item.get("content"), _read_part))
    call_id = name_of(item.get("call_id")) or name_of(item.get("id"))
    if kind.endswith("_call_output"):
        output = item.get("output")
        parts = parts_of(output, _read_part) if isinstance(output, list) else ()
        text = plain_text(parts) if isinstance(output, list) else written(output)
        return Message("tool", (ToolResult(text, call_id, media=pictures(parts)),))
    if kind == "image_generation_call":
        return Message("assistant", (Media("image", text_of(item.get("status")), picture_of(item.get("result"))),))
    if kind.endswith("_call"):
        arguments = next((item[key] for key in ("arguments", "input", "action") if key in item), None)
        return Message("assistant", (ToolCall(text_of(item.get("name")) or kind, written(arguments), call_id),))
    if kind == "reasoning":
        texts = [text_of(part.get("text")) for key in ("summary", "content") for part in items_of(item.get(key))]
        return Message("assistant", (Thought("\n".join(texts)),))
    return Message("assistant", (Media(kind),)) if kind else None


def _read_part(part: Json) -> Iterator[Part]:
    kind = text_of(part.get("type"))
    match kind:
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            yield Text(text_of(part.get("text")))
        case "refusal":
            yield Text(text_of(part.get("refusal")), refusal=True)
        case "input_image":
            url = part.get("image_url")
            yield Media("image", locator(url) or text_of(part.get("file_id")), picture(url))
        case "input_file":
            names = (text_of(part.get(key)) for key in ("filename", "file_url", "file_id"))
            yield Media("file", next(filter(None, names), ""))
        case _:
            yield Media(kind or "unknown part")


def _read_answer(answer: Answer) -> Answered:
    if answer.streamed:
        return _read_stream(answer.objects)
    return _read_response(answer.objects[0], answer.objects[0].get("output")) if answer.objects else Answered()


def _read_response(response: Json, output: Any) -> Answered:
    usage = mapping_of(response.get("usage"))
    stop = name_of(mapping_of(response.get("incomplete_details")).get("reason")) or name_of(response.get("status"))
    messages = [message for item in items_of(output) if (message := _read_item(item)) is not None]
    parts = tuple(part for message in messages for part in message.parts)
    return Answered(
        name_of(response.get("model")),
        Message("assistant", parts) if messages else None,
        None if stop in ("in_progress", "queued") else stop,
        count_of(usage.get("input_tokens")),
        count_of(usage.get("output_tokens")),
        error_of(response),
        count_of(mapping_of(usage.get("input_tokens_details")).get("cached_tokens")),
    )


def _read_stream(events: Iterable[Json]) -> Answered:
    response: Json = {}
    items = _Items()
    error = None
    for event in events:
        kind = text_of(event.get("type"))
        response = mapping_of(event.get("response")) or response
        if kind == "error":
            error = error_of(event) or name_of(event.get("message")) or "error"
        elif "error" in event:
            error = error_of(event) or error
        items.add(kind, event)
    answered = _read_response(response, items_of(response.get("output")) or items.output())
    return answered if error is None else replace(answered, error=error)


class _Items:
    """Puts output items together from the events of a stream, by their `output_index`."""

    def __init__(self) -> None:
        self._items: dict[int, Json] = {}
        self._done: set[int] = set()
        self._texts: dict[tuple[int, str, str, str, int], list[str]] = {}

    def add(self, kind: str, event: Json) -> None:
        index = count_of(event.get("output_index")) or 0
        delta = text_of(event.get("delta"))
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = mapping_of(event.get("item"))
            if kind.endswith("done"):
                self._done.add(index)
        elif kind in _DELTAS:
            place, part, field = _DELTAS[kind]
            number = count_of(event.get("content_index", event.get("summary_index"))) or 0
            self._texts.setdefault((index, place, part, field, number), []).append(delta)
        elif kind in _CALL_DELTAS:
            self._texts.setdefault((index, "", "", _CALL_DELTAS[kind], 0), []).append(delta)

    def output(self) -> list[Json]:
        """The items so far: those that were done as they were sent, the others with their deltas joined."""
        items = dict(self._items)
        for (index, place, part, field, _), texts in sorted(self._texts.items()):
            if index in self._done:
                continue
            text = "".join(texts)
            item = items.get(index) or {"type": "message" if place == "content" else "reasoning"}
            added = {place: [*items_of(item.get(place)), {"type": part, field: text}]} if place else {field: text}
            items[index] = item | added
        return [item for _, item in sorted(items.items())]


DIALECT = Dialect("openai-responses", _read_request, _read_answer)
