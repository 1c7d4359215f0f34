"""Ollama's own API, which streams JSON lines; knows `/api/chat` and `/api/generate`.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from tapeproxy.tapes.conversation import Answer, Answered, Asked, Dialect, Media, Message, Part, Text, Thought, ToolCall
from tapeproxy.tapes.dialects.shapes import (
    count_of,
    error_of,
    items_of,
    mapping_of,
    name_of,
    picture_of,
    text_of,
    written,
)
from tapeproxy.tapes.records import Json


def _read_request(path: str, body: Json) -> Asked | None:
    model = name_of(body.get("model"))
    if path.endswith("/api/chat") and isinstance(body.get("messages"), list):
        return Asked(model, tuple(map(_read_message, items_of(body["messages"]))))
    if path.endswith("/api/generate"):
        given = (("system", text_of(body.get("system"))), ("user", text_of(body.get("prompt"))))
        return Asked(model, tuple(Message(role, (Text(text),)) for role, text in given if text))
    return None


def _read_message(message: Json) -> Message:
    parts: list[Part] = []
    if thought := text_of(message.get("thinking")):
        parts.append(Thought(thought))
    if text := text_of(message.get("content")):
        parts.append(Text(text))
    images = message.get("images")
    parts.extend(Media("image", "", picture_of(image)) for image in (images if isinstance(images, list) else ()))
    for call in items_of(message.get("tool_calls")):
        function = mapping_of(call.get("function"))
        parts.append(
            ToolCall(text_of(function.get("name")), written(function.get("arguments")), name_of(call.get("id")))
        )
    return Message(text_of(message.get("role")) or "assistant", tuple(parts))


def _read_answer(answer: Answer) -> Answered:
    thoughts: list[str] = []
    texts: list[str] = []
    calls: list[Json] = []
    last: Json = {}
    error = None
    for obj in answer.objects:
        message = mapping_of(obj.get("message"))
        thoughts.append(text_of(message.get("thinking")) or text_of(obj.get("thinking")))
        texts.append(text_of(message.get("content")) or text_of(obj.get("response")))
        calls.extend(items_of(message.get("tool_calls")))
        error = error_of(obj) or error
        last = obj
    whole = _read_message({"content": "".join(texts), "thinking": "".join(thoughts), "tool_calls": calls})
    return Answered(
        name_of(last.get("model")),
        whole if whole.parts or last.get("done") is True else None,
        name_of(last.get("done_reason")),
        count_of(last.get("prompt_eval_count")),
        count_of(last.get("eval_count")),
        error,
    )


DIALECT = Dialect("ollama", _read_request, _read_answer)
