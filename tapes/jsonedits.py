"""A JSON text with one thing changed, and every other byte as it was. Knows paths, not whose text it is.

A step into a string that holds a JSON object or list, as the arguments of a tool call do, goes on inside it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal

from tapeproxy.tapes.jsonpaths import JsonPath, Step
from tapeproxy.tapes.jsonspans import Item, Node, read_spans
from tapeproxy.tapes.jsonvalues import read_json, too_deep
from tapeproxy.tapes.splicing import Edit, apply, settled

type Operation = Literal["set", "append", "prepend", "delete"]

_MOST_NAMES: Final = 12
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a place in a JSON text; `value` is of no account where it is deleted."""

    operation: Operation
    value: Any = None


class UnfitError(ValueError):
    """A change that does not fit what is there. The message says what is there instead."""


def edit_json(text: bytes, path: JsonPath, change: Change) -> bytes:
    """`text` with the change made wherever `path` leads. Raises UnfitError.

    What is set need not be there if it is a member of an object that is.
    """
    return apply(text, json_edits(text, path, change))


def json_edits(text: bytes, path: JsonPath, change: Change) -> list[Edit]:
    """The edits that `edit_json` makes. Raises UnfitError."""
    root = read_spans(text)
    if root is None:
        raise UnfitError("it is not JSON")
    return settled(_edits(text, root, path.steps, change, "$"))


def write_value(value: Any) -> bytes:
    """A JSON value as an edit writes it: compact, in UTF-8. Raises UnfitError for what JSON cannot hold."""
    if too_deep(value):
        raise UnfitError("the new value is nested too deeply")
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        raise UnfitError("the new value is not UTF-8") from None


def describe(text: bytes, node: Node) -> str:
    """A value in a few words, for someone who looked for another."""
    size = len(node.items)
    match node.kind:
        case "object":
            names = [str(item.name) for item in node.items]
            more = f" and {size - _MOST_NAMES} more" if size > _MOST_NAMES else ""
            return f"an object with {', '.join(names[:_MOST_NAMES])}{more}" if names else "an empty object"
        case "list":
            return f"a list of {size}, [0] to [{size - 1}]" if size else "an empty list"
        case "text":
            return f"the text {_excerpt(text, node)}"
        case _:
            return f"the value {_excerpt(text, node)}"


def _excerpt(text: bytes, node: Node) -> str:
    said = text[node.start : node.end].decode(errors="replace")
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


def _edits(text: bytes, root: Node, steps: Sequence[Step], change: Change, trail: str) -> list[Edit]:
    if not steps:
        return [_at(text, root, change, trail)]
    places = [(root, trail)]
    edits: list[Edit] = []
    misses: list[str] = []
    for number, step in enumerate(steps):
        below: list[tuple[Node, str]] = []
        for node, where in places:
            if (inner := _inside(text, node)) is not None:
                new = _inner_edit(inner, steps[number:], change, where)
                edits.append(Edit(node.start, node.end, write_value(new.decode())))
                continue
            found = list(_found(node, step, where))
            if number + 1 == len(steps):
                edits += _last(text, node, step, [item for item, _ in found], change, where)
            below += [(item.node, place) for item, place in found]
            creates = number + 1 == len(steps) and _creates(node, step, change)
            if not found and not creates:
                misses.append(_miss(text, node, step, where))
        places = below
    if not edits:
        raise UnfitError(misses[0] if misses else f"there is nothing at {trail}")
    return edits


def _inner_edit(text: bytes, steps: Sequence[Step], change: Change, trail: str) -> bytes:
    root = read_spans(text)
    assert root is not None  # or it would not be looked into
    return apply(text, settled(_edits(text, root, steps, change, trail)))


def _inside(text: bytes, node: Node) -> bytes | None:
    """The JSON object or list that a string holds, or None."""
    if node.kind != "text":
        return None
    value: str = read_json(text[node.start : node.end])[0]
    inner = value.encode(errors="replace")
    return inner if value[:1] in ("{", "[") and read_json(inner)[1] else None


def _found(node: Node, step: Step, where: str) -> Iterator[tuple[Item, str]]:
    if step.deep:
        for item, place in _children(node, where):
            yield from _found(item.node, step, place)
    if step.name is None:
        yield from _children(node, where)
    elif (named := node.find(step.name)) is not None:
        yield named, where + str(Step(step.name))


def _children(node: Node, where: str) -> Iterator[tuple[Item, str]]:
    for index, item in enumerate(node.items):
        yield item, where + str(Step(index if item.name is None else item.name))


def _creates(node: Node, step: Step, change: Change) -> bool:
    return change.operation == "set" and node.kind == "object" and isinstance(step.name, str) and not step.deep


def _last(text: bytes, node: Node, step: Step, found: Sequence[Item], change: Change, where: str) -> list[Edit]:
    """What is to be done for the last step of a path, which led to `found`, in `node` or below it."""
    if change.operation == "delete":
        return _deletions(node, found) if not step.deep else _deep_deletions(node, found)
    if not found and _creates(node, step, change):
        member = write_value(step.name) + b":" + write_value(change.value)
        return [_inserted(node, member)]
    return [_at(text, item.node, change, where + str(step)) for item in found]


def _at(text: bytes, node: Node, change: Change, where: str) -> Edit:
    """A value that is there, set or appended to."""
    if change.operation == "set":
        value = change.value
        if isinstance(value, dict | list) and _inside(text, node) is not None:
            value = write_value(value).decode()  # a text that holds JSON goes on doing so
        return Edit(node.start, node.end, write_value(value))
    if change.operation == "delete":
        raise UnfitError("the whole body cannot be deleted: give another with --body")
    if node.kind == "list" and change.operation == "prepend":
        return Edit(node.start + 1, node.start + 1, write_value(change.value) + (b"," if node.items else b""))
    if node.kind == "list":
        return _inserted(node, write_value(change.value))
    if node.kind == "text" and isinstance(change.value, str):
        return Edit(node.end - 1, node.end - 1, write_value(change.value)[1:-1])
    if node.kind == "text":
        raise UnfitError(f"{where} is {describe(text, node)}: only a text can be appended to it")
    raise UnfitError(f"{where} is {describe(text, node)}: only lists and texts can be appended to")


def _inserted(node: Node, data: bytes) -> Edit:
    """Something more at the end of a list or an object."""
    at = node.items[-1].node.end if node.items else node.end - 1
    return Edit(at, at, (b"," if node.items else b"") + data)


def _deletions(node: Node, gone: Sequence[Item]) -> list[Edit]:
    """The edits that take items out of a list or an object, each with one comma."""
    out: list[Edit] = []
    kept = False
    marks = {id(item) for item in gone}
    names = {item.name for item in gone if item.name is not None}  # an object may have a name twice
    for index, item in enumerate(node.items):
        if id(item) not in marks and item.name not in names:
            kept = True
        elif kept:
            out.append(Edit(node.items[index - 1].node.end, item.node.end, b""))
        else:
            last = index + 1 == len(node.items)
            out.append(Edit(item.start, item.node.end if last else node.items[index + 1].start, b""))
    return out


def _deep_deletions(node: Node, gone: Sequence[Item]) -> list[Edit]:
    """The same at any depth; what stands in something that goes, goes with it."""
    marks = {id(item) for item in gone}
    here = [item for item in node.items if id(item) in marks]
    below = [item.node for item in node.items if id(item) not in marks]
    return [*_deletions(node, here), *(edit for inner in below for edit in _deep_deletions(inner, gone))]


def _miss(text: bytes, node: Node, step: Step, where: str) -> str:
    """There is no such thing: what there is."""
    there = describe(text, node)
    if step.deep:
        return f"nothing below {where} is called {step.name!r}: it is {there}"
    if isinstance(step.name, str) and node.kind == "object":
        near = get_close_matches(step.name, [str(item.name) for item in node.items], n=1, cutoff=0.5)
        hint = f" (did you mean {where}{Step(near[0])}?)" if near else ""
        return f"{where} has no {step.name!r}: it is {there}{hint}"
    if isinstance(step.name, int) and node.kind == "list":
        return f"{where} has no item {step.name}: it is {there}"
    asked = "no items" if step.name is None else f"no {Step(step.name)}"
    return f"{where} has {asked}: it is {there}"
