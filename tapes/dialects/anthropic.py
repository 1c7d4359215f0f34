"""Anthropic messages, also as Bedrock and Vertex carry them; knows its blocks and the events of its stream.

https://docs.anthropic.com/en/api/messages and .../messages-streaming
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

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
    picture_of,
    pictures,
    plain_text,
    text_of,
    written,
)
from tapeproxy.tapes.records import Json

# Bedrock and Vertex name the model in the path and the dialect in the body.
_HOSTED = re.compile(r"/models?/([^/]+)/invoke(?:-with-response-stream)?$|/models/([^/:]+):(?:stream)?[rR]awPredict$")
# A delta's type -> the field that holds its text, and the block's field that it is added to.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("partial_json", "input"),
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _read_request(path: str, body: Json) -> Asked | None:
    hosted = _HOSTED.search(path) if "anthropic_version" in body else None
    if not isinstance(body.get("messages"), list) or not (hosted or path.endswith("/messages")):
        return None
    in_path = unquote(hosted[1] or hosted[2]) if hosted else None
    system = parts_of(body.get("system"), _read_block)
    first = [Message("system", system)] if system else []
    return Asked(name_of(body.get("model")) or in_path, (*first, *map(_read_message, items_of(body["messages"]))))


def _read_message(message: Json) -> Message:
    return Message(text_of(message.get("role")) or "assistant", parts_of(message.get("content"), _read_block))


def _read_block(block: Json) -> Iterator[Part]:
    kind = text_of(block.get("type"))
    if kind.endswith("tool_use"):
        yield ToolCall(text_of(block.get("name")), written(block.get("input")), name_of(block.get("id")))
    elif kind.endswith("tool_result"):
        content = block.get("content")
        parts = parts_of(content, _read_simple_block)
        text = written(content) if isinstance(content, dict) else plain_text(parts)
        error = block.get("is_error") is True
        yield ToolResult(text, name_of(block.get("tool_use_id")), error=error, media=pictures(parts))
    else:
        yield from _read_simple_block(block)


def _read_simple_block(block: Json) -> Iterator[Part]:
    """A block that holds no others: results nested in results, however deep, end here."""
    kind = text_of(block.get("type"))
    if kind == "text":
        yield Text(text_of(block.get("text")))
    elif kind in ("thinking", "redacted_thinking"):
        yield Thought(text_of(block.get("thinking")))
    elif kind in ("image", "document"):
        source = mapping_of(block.get("source"))
        yield Media(kind, _describe_source(source), picture_of(source.get("data"), text_of(source.get("media_type"))))
    else:
        yield Media(kind or "unknown block")


def _describe_source(source: Json) -> str:
    if "data" in source:
        return f"{text_of(source.get('media_type'))} {len(text_of(source['data']))} characters".strip()
    return locator(source.get("url")) or text_of(source.get("file_id"))


def _read_answer(answer: Answer) -> Answered:
    message: Json = {}
    usage: Json = {}
    error = None
    blocks = _Blocks()
    for obj in answer.objects:
        error = error_of(obj) or error
        kind = obj.get("type")
        if kind == "message":
            message = obj
        elif kind == "message_start":
            message = mapping_of(obj.get("message"))
        elif kind == "message_delta":
            message = message | mapping_of(obj.get("delta"))
        blocks.add(obj)
        given = mapping_of(obj.get("usage")) or mapping_of(mapping_of(obj.get("message")).get("usage"))
        usage = usage | {key: value for key, value in given.items() if value is not None}
    content = blocks.content() or message.get("content")
    whole = Message(text_of(message.get("role")) or "assistant", parts_of(content, _read_block))
    return Answered(
        name_of(message.get("model")),
        whole if message or whole.parts else None,
        name_of(message.get("stop_reason")),
        _count_input(usage),
        count_of(usage.get("output_tokens")),
        error,
        count_of(usage.get("cache_read_input_tokens")),
        count_of(usage.get("cache_creation_input_tokens")),
    )


def _count_input(usage: Json) -> int | None:
    """The whole prompt: `input_tokens` alone leaves out what was written to or read from the cache."""
    counts = [count for key in _INPUT_COUNTS if (count := count_of(usage.get(key))) is not None]
    return sum(counts) if counts else None


class _Blocks:
    """Puts content blocks together from the events of a stream, by their index."""

    def __init__(self) -> None:
        self._blocks: dict[int, Json] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}

    def add(self, event: Json) -> None:
        index = count_of(event.get("index")) or 0
        if event.get("type") == "content_block_start":
            self._blocks[index] = mapping_of(event.get("content_block"))
        elif event.get("type") == "content_block_delta":
            delta = mapping_of(event.get("delta"))
            source, target = _DELTAS.get(text_of(delta.get("type")), ("", ""))
            if text := text_of(delta.get(source)):
                self._texts.setdefault((index, target), []).append(text)

    def content(self) -> list[Any]:
        """The blocks so far, with their deltas joined."""
        blocks = dict(self._blocks)
        for (index, field), texts in self._texts.items():
            block = blocks.get(index, {"type": "text"})
            # A streamed tool call starts with an empty input.
            start = block.get(field) if isinstance(block.get(field), str) else ""
            blocks[index] = block | {field: f"{start}{''.join(texts)}"}
        return [block for _, block in sorted(blocks.items())]


DIALECT = Dialect("anthropic", _read_request, _read_answer)
