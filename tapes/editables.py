"""An answer as a text that somebody edits, and the edits that follow from what they made of it. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tapeproxy.tapes.answeredits import Draft, assemble, open_draft
from tapeproxy.tapes.assembled import Keys
from tapeproxy.tapes.codings import looks_like_text
from tapeproxy.tapes.edits import BodyEdit, Edit, JsonEdit, TextEdit
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.indenting import indent_json
from tapeproxy.tapes.jsonedits import Change, write_value
from tapeproxy.tapes.jsonpaths import JsonPath, Step
from tapeproxy.tapes.jsonvalues import read_json, write_json


@dataclass(frozen=True, slots=True)
class Editable:
    """What stands in the editor. `form`: all there is to say are `words`, or it is `json`, or the `body` as text."""

    form: str
    text: str

    @property
    def suffix(self) -> str:
        """What a file with it is called, so that editors know."""
        return ".json" if self.form == "json" else ".txt"


def editable(exchange: Exchange) -> Editable:
    """The answer of an exchange as a text. Raises UsageError where there is none, or it is no text."""
    draft = open_draft(exchange)
    where = f"exchange {exchange.number}"
    if draft.response is None or not draft.decoded.whole:
        why = "there is no answer" if draft.response is None else draft.decoded.note
        raise UsageError(f"nothing can be edited: {why}", where=where, fix="give a whole one with --body")
    words = _words(draft)
    if words is not None:
        return Editable("words", words)
    document = _document(draft)
    if document is not None:
        text = document.decode()
        return Editable("json", (indent_json(text) or text) + "\n")
    if not looks_like_text(draft.body):
        raise UsageError("the body is not text", where=where, fix="give another with --body FILE")
    return Editable("body", draft.body.decode(errors="replace"))


def edits_of(before: Editable, after: str, at: int) -> list[Edit]:
    """The edits that make of an answer what was made of its text; none where that is as it was.

    Raises UsageError for what is no JSON any more, with the line.
    """
    # Most editors end a file with a line end.
    after = after if before.text.endswith("\n") else after.removesuffix("\n")
    if after == before.text:
        return []
    if before.form == "words":
        return [TextEdit(after, at)]
    if before.form == "body":
        return [BodyEdit(after.encode(), at)]
    old, _ = read_json(before.text.encode())
    new, readable = read_json(after.encode())
    if not readable:
        raise UsageError(f"what was edited is not JSON: {_where_broken(after)}")
    return [JsonEdit(JsonPath(tuple(map(Step, keys))), change, at=at) for keys, change in _changes(old, new)]


def options_of(edits: Iterable[Edit]) -> list[tuple[str, str]]:
    """Edits of `edits_of` as options of `tapeproxy fork`: `("--set", "7:$.a=1")`, each with its event."""
    return [_option(edit) for edit in edits]


def _option(edit: Edit) -> tuple[str, str]:
    match edit:
        case TextEdit():
            return "--text", f"{edit.at}::{edit.text}"
        case BodyEdit():
            return "--body", f"{edit.at}::@{edit.data.decode()}"
        case JsonEdit(change=Change("delete")):
            return "--delete", f"{edit.at}:{edit.path}"
        case JsonEdit():
            sign = "+=" if edit.change.operation == "append" else "="
            return "--set", f"{edit.at}:{edit.path}{sign}{write_value(edit.change.value).decode()}"
    raise TypeError(edit)


def _words(draft: Draft) -> str | None:
    """The text of a stream that brings nothing else piece by piece."""
    events = draft.events
    assembled = None if events is None else assemble(draft, events)
    if assembled is None:
        return None
    spoken = assembled.words()
    others = [keys for keys, slot in assembled.slots.items() if slot.deltas and slot.text and keys not in spoken]
    return assembled.slots[spoken[0]].text if len(spoken) == 1 and not others else None


def _document(draft: Draft) -> bytes | None:
    """The JSON of a body, or of the answer that its stream adds up to."""
    events = draft.events
    if events is None:
        return draft.body if read_json(draft.body)[1] else None
    assembled = assemble(draft, events)
    return None if assembled is None else write_value(assembled.document())


def _changes(old: Any, new: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Change]]:
    """The smallest changes that make one value of another."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from (((*keys, key), Change("delete")) for key in old if key not in new)
        for key, value in new.items():
            if key in old:
                yield from _changes(old[key], value, (*keys, key))
            else:
                yield (*keys, key), Change("set", value)
    elif isinstance(old, list) and isinstance(new, list) and len(new) >= len(old):
        for index, item in enumerate(old):
            yield from _changes(item, new[index], (*keys, index))
        yield from ((keys, Change("append", item)) for item in new[len(old) :])
    elif write_json(old) != write_json(new):
        yield keys, Change("set", new)


def _where_broken(text: str) -> str:
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg.lower()}"
    return "it is nested too deeply, or has a number that JSON has not"
