"""The answer that a stream of events adds up to, and which events each of its values comes from. Knows no provider.

A value comes in pieces, in the deltas of several events, or whole, in one event or in several that repeat it. To give
it another value, its pieces are cut anew where they were cut, in proportion, and its repetitions follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from tapeproxy.tapes.differences import json_differences
from tapeproxy.tapes.jsonedits import Change, UnfitError, edit_json, write_value
from tapeproxy.tapes.jsonpaths import JsonPath, Step
from tapeproxy.tapes.jsonvalues import read_json, write_json
from tapeproxy.tapes.records import Json

type Keys = tuple[str | int, ...]
type Events = Sequence[tuple[int, Json]]
"""The events that are JSON objects, each with its number."""

_MOST: Final = 4096
"""Items that a list may have: an index is a number that somebody sent."""
_DEEPEST: Final = 64
_ABSENT: Final = object()


class Piece(NamedTuple):
    """Where a value, or a part of it, stands: in which event, at which place of it, and what it is."""

    event: int
    keys: Keys
    value: Any


@dataclass(slots=True)
class Slot:
    """A value of the assembled answer. `words`: what the model says to its user; `is_json`: its text is JSON."""

    deltas: list[Piece] = field(default_factory=list[Piece])
    copies: list[Piece] = field(default_factory=list[Piece])
    words: bool = False
    is_json: bool = False

    @property
    def text(self) -> str:
        """What its deltas add up to."""
        return "".join([piece.value for piece in self.deltas])

    @property
    def value(self) -> Any:
        """The value as it stands in the assembled answer."""
        if not self.deltas:
            return self.copies[-1].value
        if not self.is_json:
            return self.text
        value, readable = read_json(self.text.encode(errors="replace"))
        return value if readable else self.text


@dataclass(slots=True)
class Assembled:
    """The values of an answer by their places in it, as `("choices", 0, "message", "content")`."""

    slots: dict[Keys, Slot] = field(default_factory=dict[Keys, Slot])
    _lists: dict[Keys, bool] = field(default_factory=dict[Keys, bool])

    def delta(self, keys: Keys, piece: Piece, *, words: bool = False, is_json: bool = False) -> None:
        """An event brings a piece of a text."""
        if self._fits(keys):
            slot = self.slots.setdefault(keys, Slot())
            slot.deltas.append(piece)
            slot.words |= words
            slot.is_json |= is_json

    def copy(self, keys: Keys, piece: Piece) -> None:
        """An event brings a value whole; of an object or a list, all values in it."""
        value = piece.value
        if isinstance(value, dict | list) and value and len(keys) < _DEEPEST:
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                self.copy((*keys, key), Piece(piece.event, (*piece.keys, key), item))
        elif keys and self._fits(keys):
            self.slots.setdefault(keys, Slot()).copies.append(piece)

    def document(self) -> Any:
        """The assembled answer as a JSON value."""
        root: dict[str | int, Any] = {}
        for keys, slot in self._shown():
            place = root
            for key in keys[:-1]:
                place = place.setdefault(key, {})
            place[keys[-1]] = slot.value
        return _listed(root, {keys for keys, _ in self._shown()})

    def words(self) -> list[Keys]:
        """Where what the model says to its user stands."""
        return [keys for keys, slot in self._shown() if slot.words]

    def changes(self, new: Any) -> list[tuple[Keys, Any]]:
        """What another version of `document()` changes. Raises UnfitError where it has another shape."""
        old, out = self.document(), list[tuple[Keys, Any]]()
        new = _copied(new)
        for keys, _ in self._shown():
            before, after = _exchanged(old, keys), _exchanged(new, keys)
            if after is _ABSENT:
                raise UnfitError(
                    f"{path_of(keys)} cannot be taken out of the answer that a stream adds up to: "
                    "give it another value, or delete events ($events[N])"
                )
            if write_json(before) != write_json(after):
                out.append((keys, after))
        if (more := next(json_differences(old, new), None)) is not None:
            where = more.where.removeprefix("body ")
            near = get_close_matches(where, self._paths(), n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UnfitError(f"the stream has no place for {where}: change an event instead ($events[N]){hint}")
        return out

    def rewritten(self, keys: Keys, value: Any, events: Mapping[int, bytes]) -> dict[int, bytes]:
        """The texts of the events that change when a value becomes another. Raises UnfitError."""
        slot = self.slots[keys]
        out: dict[int, bytes] = {}
        was: Any = slot.text if slot.deltas else slot.value
        now = _as_text(keys, slot, value) if slot.deltas else value
        if slot.deltas:
            texts = split_text(now, [len(piece.value) for piece in slot.deltas])
            for piece, text in zip(slot.deltas, texts, strict=True):
                if text != piece.value:
                    _write(out, events, piece, text)
        for piece in slot.copies:
            if piece.value == was and type(piece.value) is type(was):
                _write(out, events, piece, now)
        return out

    def _paths(self) -> list[str]:
        """The places that there are, and those above them."""
        return [path_of(keys[:size]) for keys in self.slots for size in range(1, len(keys) + 1)]

    def _fits(self, keys: Keys) -> bool:
        """Whether there can be such a place: what was a list once stays one."""
        return len(keys) <= _DEEPEST and all(
            (not isinstance(key, int) or 0 <= key < _MOST)
            and self._lists.setdefault(keys[:size], isinstance(key, int)) is isinstance(key, int)
            for size, key in enumerate(keys)
        )

    def _shown(self) -> list[tuple[Keys, Slot]]:
        """The slots without those inside another one, and without what was empty and was filled later."""
        parents = {keys[:size] for keys in self.slots for size in range(1, len(keys))}
        whole = {keys for keys, slot in self.slots.items() if slot.deltas}
        return [
            (keys, slot)
            for keys, slot in self.slots.items()
            if (slot.deltas or keys not in parents) and not any(keys[:size] in whole for size in range(1, len(keys)))
        ]


def path_of(keys: Keys) -> str:
    """A place as a JSON path."""
    return str(JsonPath(tuple(Step(key) for key in keys)))


def split_text(text: str, sizes: Sequence[int]) -> list[str]:
    """`text` in as many pieces as there are `sizes`, cut between characters, in proportion to them.

    As long as there are characters enough, no piece is empty that was not.
    """
    total = sum(sizes)
    if not total:
        return [text, *[""] * (len(sizes) - 1)] if sizes else []
    empty = sum(1 for size in sizes if size)  # of those that come
    spare = len(text) >= empty
    out: list[str] = []
    at = seen = 0
    for size in sizes:
        end = at
        if size:
            seen += size
            empty -= 1
            end = (2 * seen * len(text) + total) // (2 * total)
            end = min(max(end, at + 1), len(text) - empty) if spare else end
        out.append(text[at:end])
        at = end
    return out


def _as_text(keys: Keys, slot: Slot, value: Any) -> str:
    if isinstance(value, str):
        return value
    if slot.is_json or (isinstance(value, dict | list) and slot.text[:1] in ("{", "[")):
        return write_value(value).decode()
    quoted = write_value(str(value)).decode() if not isinstance(value, dict | list) else '"…"'
    raise UnfitError(f"{path_of(keys)} is a text that comes in pieces: it can only become another text, as {quoted}")


def _write(out: dict[int, bytes], events: Mapping[int, bytes], piece: Piece, value: Any) -> None:
    text = out.get(piece.event, events[piece.event])
    path = JsonPath(tuple(Step(key) for key in piece.keys))
    out[piece.event] = edit_json(text, path, Change("set", value))


def _listed(value: Any, leaves: set[Keys], keys: Keys = ()) -> Any:
    """Objects whose keys are indexes as the lists they stand for; what is missing of a list is null."""
    if keys in leaves or not isinstance(value, dict):
        return value
    items = {key: _listed(item, leaves, (*keys, key)) for key, item in value.items()}
    if items and all(isinstance(key, int) for key in items):
        return [items.get(n) for n in range(max(items) + 1)]
    return items


def _copied(value: Any) -> Any:
    """A value of which parts may be changed."""
    return read_json(write_value(value))[0]


def _exchanged(value: Any, keys: Keys) -> Any:
    """What stands at a place, which becomes null; `_ABSENT` where there is no such place."""
    for key in keys[:-1]:
        value = _step(value, key)
    last = keys[-1]
    found = _step(value, last)
    if found is not _ABSENT:
        value[last] = None
    return found


def _step(value: Any, key: str | int) -> Any:
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key, _ABSENT)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else _ABSENT
