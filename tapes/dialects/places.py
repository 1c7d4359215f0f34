"""Where in the events of each provider's stream the values of its answer stand, and where in a plain answer its words.

The assembled answer looks as the provider's answer does when it is not streamed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tapeproxy.tapes.assembled import Assembled, Events, Keys, Piece
from tapeproxy.tapes.dialects import converseplaces, geminiplaces
from tapeproxy.tapes.dialects.shapes import count_of, items_of, mapping_of, numbered, text_of
from tapeproxy.tapes.records import Json


@dataclass(frozen=True, slots=True)
class Places:
    """One dialect's places. `words`: those of the assistant's texts in a plain answer. `listed`: its stream may be a
    JSON list."""

    assemble: Callable[[Events], Assembled]
    words: Callable[[Json], Iterator[Keys]]
    listed: bool = False


# --- OpenAI chat completions ---------------------------------------------------------------------------------------


def _assemble_chat(events: Events) -> Assembled:
    out = Assembled()
    for number, event in events:
        for key, value in event.items():
            if key != "choices" and value is not None:
                out.copy((key,), Piece(number, (key,), value))
        for at, choice in numbered(event.get("choices")):
            keys: Keys = ("choices", count_of(choice.get("index")) or 0)
            _take_choice(out, number, keys, ("choices", at), choice)
    return out


def _take_choice(out: Assembled, number: int, keys: Keys, place: Keys, choice: Json) -> None:
    for key in ("index", "finish_reason"):
        if choice.get(key) is not None:
            out.copy((*keys, key), Piece(number, (*place, key), choice[key]))
    keys, place = (*keys, "message"), (*place, "delta")
    delta = mapping_of(choice.get("delta"))
    if role := text_of(delta.get("role")):
        out.copy((*keys, "role"), Piece(number, (*place, "role"), role))
    for key in ("reasoning", "reasoning_content", "content", "refusal"):
        if isinstance(text := delta.get(key), str):
            out.delta((*keys, key), Piece(number, (*place, key), text), words=key == "content")
    for at, call in numbered(delta.get("tool_calls")):
        index = call.get("index")
        index = index if type(index) is int else at
        _take_call(out, number, (*keys, "tool_calls", index), (*place, "tool_calls", at), call)
    if legacy := mapping_of(delta.get("function_call")):
        _take_call(out, number, keys, place, {"function_call": legacy})


def _take_call(out: Assembled, number: int, keys: Keys, place: Keys, call: Json) -> None:
    for key in ("id", "type"):
        if call.get(key) is not None:
            out.copy((*keys, key), Piece(number, (*place, key), call[key]))
    for kind, argument in (("function", "arguments"), ("custom", "input"), ("function_call", "arguments")):
        function = mapping_of(call.get(kind))
        if name := text_of(function.get("name")):
            out.copy((*keys, kind, "name"), Piece(number, (*place, kind, "name"), name))
        if isinstance(text := function.get(argument), str):
            out.delta((*keys, kind, argument), Piece(number, (*place, kind, argument), text))


def _chat_words(answer: Json) -> Iterator[Keys]:
    for at, choice in numbered(answer.get("choices")):
        content = mapping_of(choice.get("message")).get("content")
        keys: Keys = ("choices", at, "message", "content")
        if isinstance(content, str):
            yield keys
        yield from ((*keys, n, "text") for n, part in numbered(content) if part.get("type") == "text")


# --- Anthropic messages --------------------------------------------------------------------------------------------

_BLOCK_DELTAS: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


def _assemble_messages(events: Events) -> Assembled:
    out = Assembled()
    for number, event in events:
        kind = event.get("type")
        keys: Keys = ("content", count_of(event.get("index")) or 0)
        if kind == "message_start":
            out.copy((), Piece(number, ("message",), mapping_of(event.get("message"))))
        elif kind == "message_delta":
            out.copy((), Piece(number, ("delta",), mapping_of(event.get("delta"))))
            out.copy(("usage",), Piece(number, ("usage",), mapping_of(event.get("usage"))))
        elif kind == "content_block_start":
            _take_block(out, number, keys, mapping_of(event.get("content_block")))
        elif kind == "content_block_delta":
            delta = mapping_of(event.get("delta"))
            source, target = _BLOCK_DELTAS.get(text_of(delta.get("type")), ("", ""))
            if isinstance(text := delta.get(source), str):
                piece = Piece(number, ("delta", source), text)
                out.delta((*keys, target), piece, words=target == "text", is_json=target == "input")
    return out


def _take_block(out: Assembled, number: int, keys: Keys, block: Json) -> None:
    """What a block begins with; its texts may already have a piece here."""
    for key, value in block.items():
        piece = Piece(number, ("content_block", key), value)
        if key in ("text", "thinking", "signature") and isinstance(value, str):
            out.delta((*keys, key), piece, words=key == "text")
        else:
            out.copy((*keys, key), piece)


def _message_words(answer: Json) -> Iterator[Keys]:
    return (("content", n, "text") for n, block in numbered(answer.get("content")) if block.get("type") == "text")


# --- OpenAI responses ----------------------------------------------------------------------------------------------

# Of an event: the field of the item that it adds to, the event's field that says to which part, the part's field.
_TEXTS: Final = {
    "response.output_text": ("content", "content_index", "text"),
    "response.refusal": ("content", "content_index", "refusal"),
    "response.reasoning_text": ("content", "content_index", "text"),
    "response.reasoning_summary_text": ("summary", "summary_index", "text"),
}
_CALLS: Final = {
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}
_PARTS: Final = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}


def _assemble_response(events: Events) -> Assembled:
    out = Assembled()
    for number, event in events:
        out.copy((), Piece(number, ("response",), mapping_of(event.get("response"))))
        kind, _, stage = text_of(event.get("type")).rpartition(".")
        item: Keys = ("output", count_of(event.get("output_index")) or 0)
        if kind == "response.output_item":
            out.copy(item, Piece(number, ("item",), mapping_of(event.get("item"))))
        elif kind in _PARTS:
            field, index = _PARTS[kind]
            part = mapping_of(event.get("part"))
            out.copy((*item, field, count_of(event.get(index)) or 0), Piece(number, ("part",), part))
        elif kind in _TEXTS:
            field, index, text = _TEXTS[kind]
            keys: Keys = (*item, field, count_of(event.get(index)) or 0, text)
            _take_text(out, number, event, stage, keys, words=kind == "response.output_text")
        elif kind in _CALLS:
            _take_text(out, number, event, stage, (*item, _CALLS[kind]), words=False)
    return out


def _take_text(out: Assembled, number: int, event: Json, stage: str, keys: Keys, *, words: bool) -> None:
    """A delta of a text, or at its end the whole of it."""
    name = "delta" if stage == "delta" else keys[-1]
    if not isinstance(text := event.get(str(name)), str):
        return
    if stage == "delta":
        out.delta(keys, Piece(number, (name,), text), words=words)
    else:
        out.copy(keys, Piece(number, (name,), text))


def _response_words(answer: Json) -> Iterator[Keys]:
    for at, item in numbered(answer.get("output")):
        for n, part in numbered(item.get("content")):
            if part.get("type") == "output_text":
                yield "output", at, "content", n, "text"


# --- Ollama --------------------------------------------------------------------------------------------------------


def _assemble_ollama(events: Events) -> Assembled:
    out = Assembled()
    calls = 0
    for number, event in events:
        for key, value in event.items():
            if key in ("response", "thinking") and isinstance(value, str):
                out.delta((key,), Piece(number, (key,), value), words=key == "response")
            elif key != "message":
                out.copy((key,), Piece(number, (key,), value))
        message = mapping_of(event.get("message"))
        for key, value in message.items():
            keys: Keys = ("message", key)
            if key in ("content", "thinking") and isinstance(value, str):
                out.delta(keys, Piece(number, keys, value), words=key == "content")
            elif key != "tool_calls":
                out.copy(keys, Piece(number, keys, value))
        for at, call in enumerate(items_of(message.get("tool_calls"))):
            out.copy(("message", "tool_calls", calls + at), Piece(number, ("message", "tool_calls", at), call))
        calls += len(items_of(message.get("tool_calls")))
    return out


def _ollama_words(answer: Json) -> Iterator[Keys]:
    if isinstance(mapping_of(answer.get("message")).get("content"), str):
        yield "message", "content"
    if isinstance(answer.get("response"), str):
        yield ("response",)


PLACES: Final = {
    "openai-chat": Places(_assemble_chat, _chat_words),
    "anthropic": Places(_assemble_messages, _message_words),
    "openai-responses": Places(_assemble_response, _response_words),
    "gemini": Places(geminiplaces.assemble, geminiplaces.words, listed=True),
    "bedrock-converse": Places(converseplaces.assemble, converseplaces.words),
    "ollama": Places(_assemble_ollama, _ollama_words),
}
