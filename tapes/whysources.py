"""The texts of a tape that words may come from, and the texts of a request. Knows bodies, not who knew of what."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal
from urllib.parse import unquote_plus

from tapeproxy.tapes.answeredits import assemble, open_draft
from tapeproxy.tapes.assembled import Keys, path_of
from tapeproxy.tapes.codings import decode, looks_like_text
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.folding import Folded
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.values import with_contents

type Kind = Literal["answer", "value", "clock", "chance", "argv", "cwd"]

STRUCTURE: Final = frozenset({"role", "type", "object", "model"})
"""Fields whose values stand everywhere and come from nowhere."""
_SILENT: Final = frozenset({"process", "exit", "socket", "sent", "pid", "change", "stat"})
"""Values that are none that an agent reads words from."""


@dataclass(frozen=True)
class Leaf:
    """A text in a body: the keys that lead to it, or what it is called (`name`) where it is in no JSON."""

    keys: Keys
    name: str
    text: str

    @cached_property
    def place(self) -> str:
        """Where it stands, as one says it: `$.messages[3].content`, `url`."""
        return path_of(self.keys) if self.keys else self.name

    @cached_property
    def folded(self) -> Folded:
        """The text folded."""
        return Folded(self.text)

    @property
    def is_said(self) -> bool:
        """Whether it stands in a body or a URL."""
        return bool(self.keys) or self.name in ("body", "url")

    @property
    def is_structure(self) -> bool:
        """Whether it says what things are, not what was said."""
        return bool(self.keys) and self.keys[-1] in STRUCTURE


@dataclass(frozen=True)
class Told:
    """A text that came into the run: what `kind` of thing it is, and in which record of the tape (`index`) it came.

    `number`: the exchange that answered it. `lane`, `n`, `what`, `name`, `where`: the value that was read; of chance
    `n` is the place in the lane's stream. `at`: what a clock gave, in ns after the tape's start.
    """

    kind: Kind
    leaf: Leaf
    index: int = 0
    number: int | None = None
    lane: str = ""
    n: int = 0
    what: str = ""
    name: str = ""
    where: str = ""
    at: int = 0

    @property
    def origin(self) -> tuple[Any, ...]:
        """What it is one text of."""
        return self.kind, self.number, self.lane, self.n, self.leaf.place if self.kind == "argv" else ""


def request_leaves(exchange: Exchange) -> list[Leaf]:
    """The texts of a request: of its body, then `url` and `header NAME`."""
    request = exchange.request
    out = [*body_leaves(exchange.request_body, request.headers)]
    out.append(Leaf((), "url", unquote_plus(request.url.decode("latin-1"))))
    out += [Leaf((), f"header {name.decode('latin-1').lower()}", _text(value)) for name, value in request.headers]
    return out


def body_leaves(body: bytes, headers: Headers) -> Iterator[Leaf]:
    """The texts of a body: those of its JSON, or else all of it as `body`; none where it is no text."""
    data = decode(body, headers).data
    value, good = read_json(data)
    if good and isinstance(value, dict | list):
        yield from leaves(value)
    elif data and looks_like_text(data):
        yield Leaf((), "body", _text(data))


def leaves(value: Any, keys: Keys = ()) -> Iterator[Leaf]:
    """The strings and numbers in a JSON value, in order."""
    stack: list[tuple[Any, Keys]] = [(value, keys)]
    while stack:
        one, at = stack.pop()
        if isinstance(one, dict):
            stack += [(item, (*at, key)) for key, item in reversed(one.items())]
        elif isinstance(one, list):
            stack += [(item, (*at, number)) for number, item in reversed([*enumerate(one)])]
        elif isinstance(one, str):
            yield Leaf(at, "", one)
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield Leaf(at, "", str(one))


def told_by_head(tape: Tape) -> Iterator[Told]:
    """The agent's command line and folder."""
    for at, word in enumerate(tape.head.argv):
        yield Told("argv", Leaf((), f"argv[{at}]", word))
    if tape.head.cwd:
        yield Told("cwd", Leaf((), "cwd", tape.head.cwd))


def told_by_answer(exchange: Exchange) -> Iterator[Told]:
    """The texts of an answer and its headers: what its stream adds up to, its JSON by value and whole, or its text."""
    if exchange.response is None:
        return
    for leaf in _answer_leaves(exchange, exchange.response.headers):
        yield Told("answer", leaf, exchange.index, exchange.number)
    for name, value in exchange.response.headers:
        leaf = Leaf((), f"header {name.decode('latin-1').lower()}", _text(value))
        yield Told("answer", leaf, exchange.index, exchange.number)


def told_by_values(tape: Tape) -> list[Told]:
    """What the agent read past the wire, and its tools' results: as JSON by value, and whole."""
    out: list[Told] = []
    for index, value in with_contents(tape.values):
        if value.content is None or value.what in _SILENT or not looks_like_text(value.content):
            continue
        read, good = read_json(value.content)
        parts = [*leaves(read)] if good and isinstance(read, dict | list) else []
        for leaf in (*parts, Leaf((), "content", _text(value.content))):
            # As paths are that the agent read: from its folder on.
            about = (value.lane, value.n, value.what, value.name, value.where.removeprefix(f"{tape.head.cwd}/"))
            out.append(Told("value", leaf, index, None, *about))
    return out


def _answer_leaves(exchange: Exchange, headers: Headers) -> Iterator[Leaf]:
    draft = open_draft(exchange)
    events = draft.events
    if events is not None:
        assembled = assemble(draft, events)
        if assembled is not None:
            for keys, slot in assembled.slots.items():
                value = slot.text if slot.deltas else slot.copies[-1].value
                yield from [Leaf(keys, "", value)] if isinstance(value, str) else leaves(value, keys)
            return
        for number, event in enumerate(events.events):
            value, good = read_json(event.text)
            yield from leaves(value, ("events", number)) if good else ()
        return
    found = [*body_leaves(exchange.response_body, headers)]
    yield from found
    if found and found[0].keys:
        yield Leaf((), "body", _text(draft.body))


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
