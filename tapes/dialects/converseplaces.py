"""Where in the events of a ConverseStream the values of its answer stand; see `places.py`."""

from collections.abc import Iterator
from typing import Final

from tapeproxy.tapes.assembled import Assembled, Events, Keys, Piece
from tapeproxy.tapes.dialects.shapes import count_of, mapping_of, numbered
from tapeproxy.tapes.records import Json

_MESSAGE: Final[Keys] = ("output", "message")
_DELTAS: Final[tuple[tuple[Keys, Keys], ...]] = (
    (("text",), ("text",)),
    (("toolUse", "input"), ("toolUse", "input")),
    (("reasoningContent", "text"), ("reasoningContent", "reasoningText", "text")),
    (("reasoningContent", "signature"), ("reasoningContent", "reasoningText", "signature")),
)
"""Where a delta has its text, and where in the block that is."""


def assemble(events: Events) -> Assembled:
    """The blocks by their index, and what the first and the last events say of the whole."""
    out = Assembled()
    for number, event in events:
        index = count_of(event.get("contentBlockIndex"))
        if index is None:
            for key, value in event.items():
                keys: Keys = (*_MESSAGE, key) if key == "role" else (key,)
                if key != "p":  # padding
                    out.copy(keys, Piece(number, (key,), value))
            continue
        block: Keys = (*_MESSAGE, "content", index)
        for key, value in mapping_of(event.get("start")).items():
            out.copy((*block, key), Piece(number, ("start", key), value))
        for source, target in _DELTAS:
            text = _at(mapping_of(event.get("delta")), source)
            if isinstance(text, str):
                piece = Piece(number, ("delta", *source), text)
                out.delta((*block, *target), piece, words=target == ("text",), is_json=target[-1] == "input")
    return out


def _at(value: Json, keys: Keys) -> object:
    """What stands there."""
    *outer, last = keys
    for key in outer:
        value = mapping_of(value.get(str(key)))
    return value.get(str(last))


def words(answer: Json) -> Iterator[Keys]:
    """Where what the model says to its user stands in a plain answer."""
    content = mapping_of(mapping_of(answer.get("output")).get("message")).get("content")
    for at, block in numbered(content):
        if isinstance(block.get("text"), str):
            yield (*_MESSAGE, "content", at, "text")
