"""Where every value of a JSON text stands in it, as a tree. Knows JSON's grammar alone, and changes nothing."""

from dataclasses import dataclass, field
from typing import Final, Literal

from tapeproxy.tapes.jsonstrings import TOKEN
from tapeproxy.tapes.jsonvalues import MOST_NESTED, read_json

type Kind = Literal["object", "list", "text", "number", "true", "false", "null"]

_OPENING: Final[dict[bytes, Kind]] = {b"{": "object", b"[": "list"}
_WORDS: Final[dict[bytes, Kind]] = {b"true": "true", b"false": "false", b"null": "null"}


@dataclass(slots=True)
class Node:
    """A value is `text[start:end]`. `items`: those of a list or object, in order, with their names and beginnings."""

    kind: Kind
    start: int
    end: int
    items: list["Item"] = field(default_factory=list["Item"])

    def find(self, name: str | int) -> "Item | None":
        """The item of that name or index; of an object that has a name twice, the one that counts."""
        if isinstance(name, int):
            return self.items[name] if self.kind == "list" and name < len(self.items) else None
        return next((item for item in reversed(self.items) if item.name == name), None)


@dataclass(slots=True)
class Item:
    """An item of a list (`name` None) or a member of an object, whose name begins at `start`."""

    name: str | None
    start: int
    node: Node


def read_spans(text: bytes) -> Node | None:
    """The tree of a JSON text; None when it is not JSON, or nested too deeply."""
    if not read_json(text)[1]:
        return None
    root: Node | None = None
    open_nodes: list[Node] = []
    name: tuple[str, int] | None = None
    for match in TOKEN.finditer(text):
        word = match[0]
        parent = open_nodes[-1] if open_nodes else None
        if word in b",:":
            continue
        if word in b"}]":
            open_nodes.pop().end = match.end()
            continue
        if name is None and parent is not None and parent.kind == "object":
            called: str = read_json(word)[0]
            name = called, match.start()
            continue
        node = Node(_kind(word), match.start(), match.end())
        if parent is not None:
            parent.items.append(Item(None, match.start(), node) if name is None else Item(*name, node))
        name = None
        root = root or node
        if word in _OPENING:
            open_nodes.append(node)
            if len(open_nodes) > MOST_NESTED:
                return None
    return root


def _kind(word: bytes) -> Kind:
    return _OPENING.get(word) or _WORDS.get(word) or ("text" if word[:1] == b'"' else "number")
