"""Bedrock's Converse and ConverseStream, which are the same for all models there; knows their blocks and events.

The model stands in the path. The kind of an event stands in a header of its message; what it holds tells it, too.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and ..._ConverseStream.html
"""

import re
from collections.abc import Iterator
from typing import Any, Final
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
    items_of,
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

_PATH: Final = re.compile(r"/model/([^/]+)/converse(?:-stream)?$")
_MEDIA: Final = ("image", "document", "video", "audio")
_INPUT_COUNTS: Final = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")


def _read_request(path: str, body: Json) -> Asked | None:
    found = _PATH.search(path)
    if found is None or not isinstance(body.get("messages"), list):
        return None
    system = parts_of(body.get("system"), _read_block)
    first = [Message("system", system)] if system else []
    return Asked(unquote(found[1]), (*first, *map(_read_message, items_of(body["messages"]))))


def _read_message(message: Json) -> Message:
    return Message(text_of(message.get("role")) or "assistant", parts_of(message.get("content"), _read_block))


def _read_block(block: Json) -> Iterator[Part]:
    if use := mapping_of(block.get("toolUse")):
        yield ToolCall(text_of(use.get("name")), written(use.get("input")), name_of(use.get("toolUseId")))
    elif result := mapping_of(block.get("toolResult")):
        parts = parts_of(result.get("content"), _read_simple_block)
        failed = result.get("status") == "error"
        call = name_of(result.get("toolUseId"))
        yield ToolResult(plain_text(parts), call, error=failed, media=pictures(parts))
    else:
        yield from _read_simple_block(block)


def _read_simple_block(block: Json) -> Iterator[Part]:
    """A block that holds no others."""
    if isinstance(text := block.get("text"), str):
        yield Text(text)
    elif "json" in block:
        yield Text(written(block["json"]))
    elif "reasoningContent" in block:
        reasoning = mapping_of(block["reasoningContent"])
        yield Thought(text_of(mapping_of(reasoning.get("reasoningText")).get("text")))
    elif guarded := mapping_of(block.get("guardContent")):
        yield Text(text_of(mapping_of(guarded.get("text")).get("text")))
    elif cited := mapping_of(block.get("citationsContent")):
        yield from (Text(text_of(one.get("text"))) for one in items_of(cited.get("content")))
    elif kind := next((name for name in _MEDIA if name in block), None):
        yield _read_media(kind, mapping_of(block[kind]))
    elif "cachePoint" not in block:
        yield Media(next(iter(block), "unknown block"))


def _read_media(kind: str, media: Json) -> Media:
    source, form = mapping_of(media.get("source")), text_of(media.get("format"))
    data = text_of(source.get("bytes"))
    where = text_of(mapping_of(source.get("s3Location")).get("uri")) or (f"{len(data)} characters" if data else "")
    named = (text_of(media.get("name")), form, where)
    return Media(kind, " ".join(filter(None, named)), picture_of(data, f"image/{form}") if kind == "image" else None)


def _read_answer(answer: Answer) -> Answered:
    message: Json = {}
    stop = error = None
    usage: Json = {}
    blocks = _Blocks()
    for obj in answer.objects:
        message = mapping_of(mapping_of(obj.get("output")).get("message")) or message
        stop = name_of(obj.get("stopReason")) or stop
        usage = mapping_of(obj.get("usage")) or usage
        error = name_of(obj.get("message")) or error
        blocks.add(obj)
    content: Any = message.get("content") or blocks.content()
    role = text_of(message.get("role")) or blocks.role
    parts = parts_of(content, _read_block)
    counts = [count for key in _INPUT_COUNTS if (count := count_of(usage.get(key))) is not None]
    return Answered(
        None,
        Message(role or "assistant", parts) if role or parts else None,
        stop,
        sum(counts) if counts else None,
        count_of(usage.get("outputTokens")),
        error,
        count_of(usage.get("cacheReadInputTokens")),
        count_of(usage.get("cacheWriteInputTokens")),
    )


class _Blocks:
    """Puts content blocks together from the events of a stream, by their index."""

    def __init__(self) -> None:
        self.role = ""
        self._uses: dict[int, Json] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}

    def add(self, event: Json) -> None:
        index = count_of(event.get("contentBlockIndex"))
        if index is None:
            self.role = text_of(event.get("role")) or self.role
            return
        if use := mapping_of(mapping_of(event.get("start")).get("toolUse")):
            self._uses[index] = use
        delta = mapping_of(event.get("delta"))
        given = (
            ("text", delta.get("text")),
            ("toolUse", mapping_of(delta.get("toolUse")).get("input")),
            ("reasoningContent", mapping_of(delta.get("reasoningContent")).get("text")),
        )
        for kind, text in given:
            if isinstance(text, str):
                self._texts.setdefault((index, kind), []).append(text)

    def content(self) -> list[Json]:
        """The blocks so far, in the form that they have when they aren't streamed."""
        blocks: dict[int, Json] = {index: {"toolUse": use} for index, use in self._uses.items()}
        for (index, kind), texts in self._texts.items():
            text = "".join(texts)
            match kind:
                case "toolUse":
                    blocks[index] = {"toolUse": self._uses.get(index, {}) | {"input": text}}
                case "reasoningContent":
                    blocks[index] = {"reasoningContent": {"reasoningText": {"text": text}}}
                case _:
                    blocks[index] = {"text": text}
        return [block for _, block in sorted(blocks.items())]


DIALECT = Dialect("bedrock-converse", _read_request, _read_answer)
