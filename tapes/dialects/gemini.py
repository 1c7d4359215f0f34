"""Gemini's generateContent, also as Vertex carries it; knows its contents, its parts, and what its stream is made of.

The model and the verb stand in the path. A stream's events are whole answers that hold a piece each. Names are in
camelCase in answers; a request may have them in snake_case, too, as protocol buffers are read from JSON.
https://ai.google.dev/api/generate-content, https://ai.google.dev/api/caching#Content (parts) and
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
"""

import re
from collections.abc import Iterator
from itertools import groupby
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
    error_of,
    items_of,
    locator,
    mapping_of,
    name_of,
    parts_of,
    picture_of,
    pictures,
    text_of,
    written,
)
from tapeproxy.tapes.records import Json

_PATH: Final = re.compile(r"/(?:models|tunedModels|endpoints)/([^/:]+):(?:generateContent|streamGenerateContent)$")
_CAPITAL: Final = re.compile(r"(?<=[a-z])[A-Z]")
_MEDIA: Final = ("image", "audio", "video")
_URLSAFE: Final = str.maketrans("-_", "+/")


def field_of(value: Json, name: str) -> Any:
    """What stands under a name of camelCase, or under the same in snake_case."""
    return value[name] if name in value else value.get(_CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", name))


def _read_request(path: str, body: Json) -> Asked | None:
    found = _PATH.search(unquote(path))  # some clients escape the colon
    if found is None or "contents" not in body:
        return None
    system = _parts(mapping_of(field_of(body, "systemInstruction")))
    first = [Message("system", system)] if system else []
    contents = body["contents"]  # one alone need not be in a list
    listed = items_of([contents] if isinstance(contents, dict) else contents)
    return Asked(found[1], (*first, *(_read_content(content, "user") for content in listed)))


def _read_content(content: Json, role: str) -> Message:
    return Message(text_of(content.get("role")) or role, _parts(content))


def _parts(content: Json) -> tuple[Part, ...]:
    parts = content.get("parts")
    return parts_of([parts] if isinstance(parts, dict) else parts, _read_part)


def _read_part(part: Json) -> Iterator[Part]:
    thought = part.get("thought") is True
    if isinstance(text := part.get("text"), str):
        if text:
            yield Thought(text) if thought else Text(text)
    elif call := mapping_of(field_of(part, "functionCall")):
        # Arguments that are streamed have no whole; what there is of them is shown.
        given = call.get("args", field_of(call, "partialArgs"))
        yield ToolCall(text_of(call.get("name")), written(given), name_of(call.get("id")))
    elif result := mapping_of(field_of(part, "functionResponse")):
        yield _read_result(result)
    elif code := mapping_of(field_of(part, "executableCode")):
        yield ToolCall("executableCode", text_of(code.get("code")), name_of(code.get("id")))
    elif done := mapping_of(field_of(part, "codeExecutionResult")):
        failed = text_of(done.get("outcome")) not in ("", "OUTCOME_OK")
        yield ToolResult(text_of(done.get("output")), name_of(done.get("id")), error=failed)
    elif media := _media(part):
        yield media
    elif rest := [name for name in part if name not in ("thought", "thoughtSignature", "thought_signature")]:
        yield Media(rest[0])


def _read_result(result: Json) -> ToolResult:
    """What a function gave. Calls mostly have no id: the name stands for it then."""
    response = result.get("response")
    media = tuple(found for part in items_of(result.get("parts")) if (found := _media(part)))
    failed = isinstance(response, dict) and "error" in response
    call = name_of(result.get("id")) or name_of(result.get("name"))
    return ToolResult(written(response), call, error=failed, media=pictures(media))


def _media(part: Json) -> Media | None:
    """What is given as base64, which may be that of URLs, or as the address of a file."""
    if inline := mapping_of(field_of(part, "inlineData")):
        kind, data = text_of(field_of(inline, "mimeType")), text_of(inline.get("data"))
        return Media(_kind(kind), f"{kind} {len(data)} characters".strip(), picture_of(data.translate(_URLSAFE), kind))
    if file := mapping_of(field_of(part, "fileData")):
        return Media(_kind(text_of(field_of(file, "mimeType"))), locator(field_of(file, "fileUri")))
    return None


def _kind(mime: str) -> str:
    kind = mime.partition("/")[0]
    return kind if kind in _MEDIA else "file"


def _read_answer(answer: Answer) -> Answered:
    model = stop = error = role = None
    usage: Json = {}
    parts: list[Part] = []
    for obj in answer.objects:
        error = error_of(obj) or error
        model = name_of(obj.get("modelVersion")) or model
        usage = mapping_of(obj.get("usageMetadata")) or usage
        stop = name_of(mapping_of(obj.get("promptFeedback")).get("blockReason")) or stop
        for candidate in (one for one in items_of(obj.get("candidates")) if one.get("index", 0) == 0):
            stop = name_of(candidate.get("finishReason")) or stop
            content = mapping_of(candidate.get("content"))
            role = name_of(content.get("role")) or role
            parts += _parts(content)
    return Answered(
        model,
        Message(role or "model", tuple(_joined(parts) if answer.streamed else parts)) if role or parts else None,
        stop,
        *_counts(usage),
        error,
        count_of(usage.get("cachedContentTokenCount")),
    )


def _joined(parts: list[Part]) -> Iterator[Part]:
    """The pieces of a stream with texts that go on put together."""
    for kind, group in groupby(parts, type):
        if kind in (Text, Thought):
            yield kind("".join([part.text for part in group if isinstance(part, Text | Thought)]))
        else:
            yield from group


def _counts(usage: Json) -> tuple[int | None, int | None]:
    """The whole prompt, cached parts and results of Google's own tools included; and thoughts with what was said."""
    asked = _sum(usage, "promptTokenCount", "toolUsePromptTokenCount")
    made = _sum(usage, "candidatesTokenCount", "thoughtsTokenCount")
    total = count_of(usage.get("totalTokenCount"))
    if made is None and asked is not None and total is not None:
        made = max(0, total - asked)  # a count of none is left out
    return asked, made


def _sum(usage: Json, *names: str) -> int | None:
    counts = [count for name in names if (count := count_of(usage.get(name))) is not None]
    return sum(counts) if counts else None


DIALECT = Dialect("gemini", _read_request, _read_answer)
