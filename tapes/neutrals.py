"""What a body says, value by value, and the same body with some of them made neutral. Pure.

A value is a leaf of the body's JSON: a string, a number or a yes. Its neutral is the empty one of its type: "", 0,
false; structure, status and headers stay. A string that holds a JSON object or list, as the arguments of a tool call
do, is looked into. In the answers of language models the words of the protocol (types, roles, ids …) are no values, and
of a stream the pieces that make one text are one value. A body that is neither JSON nor a stream of it is one value.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tapeproxy.tapes.codings import decode, header
from tapeproxy.tapes.jsonpaths import JsonPath, Step
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.splicing import Edit, recut, splice

type Steps = tuple[str | int | None, ...]
"""The way to a leaf: names and indexes; None: into the JSON that a string holds."""

_PROTOCOL: Final = frozenset(
    (
        *("type", "role", "object", "index", "id", "model", "status", "done", "done_reason", "native_finish_reason"),
        *("created", "created_at", "completed_at", "finish_reason", "stop_reason", "stop_sequence", "obfuscation"),
        *("system_fingerprint", "service_tier", "sequence_number", "output_index", "content_index"),
        *("item_id", "response_id", "call_id", "tool_call_id"),
    )
)
_FREE: Final = frozenset({"arguments", "input", "partial_json"})
"""Below these it is the agent's own vocabulary."""
_TEXTS: Final = frozenset({"content", "text"})
_ARGUMENTS: Final = frozenset({"arguments", "partial_json"})
_PLACES: Final = ("index", "output_index", "content_index")
# One line of data with JSON in it; events of several lines are left as they are.
_EVENT: Final = re.compile(rb"^(?:data: ?)?([\[{].*[\]}])\r?$", re.M)
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a body, at `path`; `branch`: what is above it, outermost first. Long texts are cut in both values."""

    path: str
    branch: tuple[str | int | None, ...]
    value: Any
    neutral: Any


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf of document number `at` of a body."""

    at: int
    steps: Steps
    value: Any
    neutral: Any


class NeutralBody:
    """A body in pieces whose values can be made neutral. `is_call`: it is a model's, and `text` what that says then."""

    def __init__(self, pieces: Sequence[bytes], headers: Headers, *, is_call: bool = False, text: str = "") -> None:
        self._pieces = pieces
        self._is_call = is_call
        self._text = text
        self._documents: list[Any] = []
        self._spans: list[tuple[int, int]] = []
        self._plain, self._coding = b"", tuple[str, ...]()
        self._streamed = False
        self._leaves: dict[str, list[_Leaf]] = {}
        self.values = tuple(self._find()) if self._read(headers) else ()

    def keeping(self, paths: frozenset[str]) -> Sequence[bytes]:
        """The pieces, as many, with all values neutral but those at these paths."""
        dropped = [leaf for path, leaves in self._leaves.items() if path not in paths for leaf in leaves]
        if not dropped:
            return self._pieces
        if not self._documents:
            return recut(self._pieces, b"")
        changes: dict[int, dict[Steps, Any]] = {}
        for leaf in dropped:
            changes.setdefault(leaf.at, {})[leaf.steps] = leaf.neutral
        edits = [Edit(*self._spans[at], _written(_changed(self._documents[at], new))) for at, new in changes.items()]
        edits.sort()
        if self._coding:
            (text,) = splice([self._plain], edits)
            return recut(self._pieces, encode(text, self._coding))
        return splice(self._pieces, edits)

    def _read(self, headers: Headers) -> bool:
        """Read the body; whether there is anything to make neutral."""
        decoded = decode(b"".join(self._pieces), headers)
        self._plain, self._coding = decoded.data, decoded.coding
        if (
            not decoded.whole
            or not self._plain
            or b"vnd.amazon.eventstream" in header(headers, b"content-type").lower()
        ):
            return False  # what could not be read can't be written either
        value, is_json = read_json(self._plain)
        if is_json:
            self._documents, self._spans = [value], [(0, len(self._plain))]
            return True
        for match in _EVENT.finditer(self._plain):
            value, is_json = read_json(match[1])
            if is_json:
                self._documents.append(value)
                self._spans.append(match.span(1))
        self._streamed = bool(self._documents)
        return True

    def _find(self) -> Iterator[Value]:
        if not self._documents:
            self._leaves["body"] = [_Leaf(0, (), None, None)]
            yield Value("body", (), _shown(self._plain.decode(errors="replace")), "")
            return
        branches: dict[str, tuple[str | int | None, ...]] = {}
        for at, document in enumerate(self._documents):
            for steps, leaf in _leaves_of(document):
                if self._is_call and _is_protocol(steps):
                    continue
                path, branch = self._place(at, document, steps)
                found = self._leaves.setdefault(path, [])
                neutral = self._neutral(steps, leaf, first=not found)
                found.append(_Leaf(at, steps, leaf, neutral))
                branches.setdefault(path, branch)
        for path in [path for path, found in self._leaves.items() if all(_same(one) for one in found)]:
            del self._leaves[path]
        for path, found in self._leaves.items():
            yield Value(path, branches[path], _joined(found, "value"), _joined(found, "neutral"))

    def _place(self, at: int, document: Any, steps: Steps) -> tuple[str, tuple[str | int | None, ...]]:
        """What a leaf is called, and where it hangs."""
        if not self._streamed:
            return _told(steps), steps
        if not self._is_call:
            return f"$events[{at}]{_told(steps)[1:]}", (at, *steps)
        # Pieces of one text come in events that say of which.
        of = [f"{name}={document[name]}" for name in _PLACES if type(document.get(name)) is int]
        path = f"$events[{', '.join(of) or '*'}]{_told(steps)[1:]}"
        return path, (path,)

    def _neutral(self, steps: Steps, leaf: Any, *, first: bool) -> Any:
        if isinstance(leaf, bool) or not isinstance(leaf, str):
            return type(leaf)()
        if not self._is_call or None in steps or not first or not steps:
            return ""
        if steps[-1] in _ARGUMENTS:
            return "{}"
        return self._text if steps[-1] in _TEXTS else ""


def _is_protocol(steps: Steps) -> bool:
    return bool(steps) and steps[-1] in _PROTOCOL and None not in steps and _FREE.isdisjoint(map(str, steps))


def _leaves_of(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """The leaves of a JSON value that are something; no nulls."""
    for step, item in _items(value):
        yield from _leaves_of(item, (*steps, step))
    if isinstance(value, str) and (held := _held(value)) is not None:
        yield from _leaves_of(held, (*steps, None))
    elif isinstance(value, str | int | float):
        yield steps, value


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _held(text: str) -> Any:
    """The JSON object or list that a string holds, with something in it; None: it holds none."""
    if text[:1] not in ("{", "["):
        return None
    value, is_json = read_json(text.encode(errors="surrogatepass"))
    return value or None if is_json else None


def _changed(value: Any, new: Mapping[Steps, Any], steps: Steps = ()) -> Any:
    """The value with other leaves at these places."""
    if isinstance(value, dict):
        return {name: _changed(item, new, (*steps, name)) for name, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, new, (*steps, at)) for at, item in enumerate(value)]
    if isinstance(value, str) and (held := _held(value)) is not None:
        changed = _changed(held, new, (*steps, None))
        return value if changed == held else _written(changed).decode()
    return new.get(steps, value)


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a long number, or half a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()


def _told(steps: Steps) -> str:
    """A JSON path; where it goes on inside a string, a colon and another one."""
    parts: list[list[Step]] = [[]]
    for step in steps:
        if step is None:
            parts.append([])
        else:
            parts[-1].append(Step(step))
    return ":".join(str(JsonPath(tuple(part))) for part in parts)


def _same(leaf: _Leaf) -> bool:
    return type(leaf.value) is type(leaf.neutral) and leaf.value == leaf.neutral


def _joined(leaves: Sequence[_Leaf], which: str) -> Any:
    """What a value is in all its pieces."""
    values = [getattr(leaf, which) for leaf in leaves]
    if all(isinstance(value, str) for value in values):
        return _shown("".join(values))
    return values[0] if len(values) == 1 else values


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
