"""What on a tape still looks like a secret, and where: the scan behind `scrub --check`. Changes nothing.

Two questions are asked of everything on a tape: would redaction, as it is now, replace something here; and does
anything, with its layers of encoding undone, look like a secret (`suspicion.py`)? Files and clocks are the caller's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tapeproxy.tapes.layers import View, expand, leaves, open_body
from tapeproxy.tapes.records import Chunks, End, Frame, Head, Headers, Json, Record, Request, Response, Seal, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.suspicion import Kind, Sought, Suspect, is_placeholder, suspects
from tapeproxy.tapes.tokens import MIN_LENGTH, WILDCARD, mask_tokens

_SHOWN: Final = 4
"""Characters of a secret that are shown of a long one: enough for `sk-a`, and little to guess from."""
_LONG: Final = 16
_CACHED: Final = 200_000
# What a tape says of itself: hashes, marks and names, and the seed, which is told of apart.
_OWN_FIELDS: Final = frozenset(
    {"seed", "host", "secrets", "digest", "trace", "messages", "file", "hash_seed", "sealed_seed", "scrubbed", "rules"}
)
_OCTETS: Final = frozenset({"url", "method", "reason", "headers", "trailers", "informational", "body", "parts"})


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that looks like a secret. `exchange` counts from 1 (None: in none); `record` is the line's number.

    `value` is the secret: it is for whoever removes it, and never shown. `name` is the field that it is the value of,
    if it is known by that.
    """

    record: int
    exchange: int | None
    place: str
    kind: Kind
    what: str
    value: bytes = field(repr=False)
    name: str = ""

    @property
    def excerpt(self) -> str:
        """The value's first characters, if it is long, and its length."""
        shown = self.value[:_SHOWN].decode("latin-1") if len(self.value) >= _LONG else ""
        return f"{shown}… ({len(self.value)} characters)"

    def to_json(self) -> Json:
        """For `--json`: everything but the secret."""
        where: Json = {"exchange": self.exchange, "record": self.record, "place": self.place}
        return where | {"kind": self.kind, "what": self.what, "excerpt": self.excerpt}


class LeftoverScanner:
    """Feed it a tape's records with their numbers, in order. `redactor` is the redaction that is in force now.

    `largest`: bytes of a body that is looked through.
    """

    def __init__(self, redactor: Redactor, sought: Sought | None = None, *, largest: int | None = None) -> None:
        self._largest = largest
        self._redactor = redactor
        self._sought = sought or Sought()
        self._open: dict[int, _Bodies] = {}
        self._exchanges: dict[int, int] = {}
        self._clean: set[int] = set()  # hashes of texts in which nothing was found: conversations repeat them
        self.seeded = False
        """Whether the tape holds the random seed of its run."""
        self.skipped = 0
        """Bodies that were too large."""
        self.unseen: list[str] = []
        """Bodies that could not be looked into, each with why."""

    def feed(self, index: int, record: Record) -> list[Leftover]:
        """Take a record; the findings in what it completes."""
        return list(_distinct(self._look(index, record)))

    def finish(self) -> list[Leftover]:
        """The findings in the bodies of exchanges that have no end."""
        left = [found for index in list(self._open) for found in _distinct(self._bodies(index))]
        self._open.clear()
        return left

    def _look(self, index: int, record: Record) -> Iterator[Leftover]:
        match record:
            case Head():
                self.seeded = record.seed is not None
                yield from self._argv(index, record)
                yield from self._fields(index, None, record.to_json(), "head")
            case Request():
                self._exchanges[index] = len(self._exchanges) + 1
                yield from self._request(index, record)
            case Response():
                yield from self._response(index, record)
            case Chunks():
                self._keep(record)
            case Frame():
                yield from self._frame(index, record)
            case End():
                yield from self._end(index, record)
            case Value() if record.content is not None:
                yield from self._content(index, record)
                yield from self._fields(index, None, _without(record.to_json(), {"content"}), "value")
            case Seal():
                pass
            case _:
                yield from self._fields(index, None, record.to_json(), record.kind)

    def _argv(self, index: int, head: Head) -> Iterator[Leftover]:
        hidden = self._redactor.argv(head.argv)
        for number, (word, better) in enumerate(zip(head.argv, hidden, strict=True)):
            value = _changed(word.encode(errors="surrogateescape"), better.encode(errors="surrogateescape"))
            if value and not is_placeholder(value.decode("latin-1")):
                yield Leftover(index, None, f"head $.argv[{number}]", "name", "a secret in the command", value)

    def _request(self, index: int, request: Request) -> Iterator[Leftover]:
        yield from self._url(index, request.url)
        yield from self._headers(index, index, request.headers, "request header")
        yield from self._fields(index, index, _without(request.to_json(), _OCTETS), "request")
        assert isinstance(request.body, bytes)  # the decoder resolves references
        self._open[index] = _Bodies(request.headers, bytearray(request.body))

    def _response(self, index: int, response: Response) -> Iterator[Leftover]:
        for _, headers in response.informational:
            yield from self._headers(index, response.of, headers, "informational header")
        yield from self._headers(index, response.of, response.headers, "response header")
        yield from self._suspects(index, response.of, "response", [View("reason", "", response.reason)])
        yield from self._fields(index, response.of, _without(response.to_json(), _OCTETS), "response")
        if response.of in self._open:
            self._open[response.of].answered = response.headers

    def _end(self, index: int, end: End) -> Iterator[Leftover]:
        yield from self._headers(index, end.of, end.trailers, "trailer")
        yield from self._fields(index, end.of, _without(end.to_json(), _OCTETS), "end")
        yield from self._bodies(end.of)
        self._open.pop(end.of, None)

    def _keep(self, chunks: Chunks) -> None:
        if (bodies := self._open.get(chunks.of)) is None:
            return
        for _, data in chunks.parts:
            assert isinstance(data, bytes)  # the decoder resolves references
            side = bodies.response if chunks.to == "client" else bodies.request
            if self._largest is None or len(side) <= self._largest:  # of one that is too large no more is needed
                side += data

    def _frame(self, index: int, frame: Frame) -> Iterator[Leftover]:
        """What is text is looked through at the end, as lines of one body: a secret may come in many messages."""
        bodies = self._open.get(frame.of)
        if frame.type != "text" or bodies is None:
            views = open_body(frame.data, ()).views
            yield from self._suspects(index, frame.of, f"{frame.type} frame to the {frame.to}", views)
            return
        side = bodies.heard if frame.to == "client" else bodies.said
        side += frame.data if frame.open is not None else frame.data + b"\n"

    def _bodies(self, index: int) -> Iterator[Leftover]:
        bodies = self._open.get(index)
        if bodies is None:
            return
        for side, headers, data in (
            ("request body", bodies.asked, bodies.request),
            ("response body", bodies.answered, bodies.response),
            ("messages to the server", MESSAGES, bodies.said),
            ("messages to the client", MESSAGES, bodies.heard),
        ):
            if not data:
                continue
            if self._largest is not None and len(data) > self._largest:
                self.skipped += 1
                continue
            opened = open_body(bytes(data), headers)
            if opened.note:
                self.unseen.append(f"exchange {self._exchanges[index]}, {side}: {opened.note}")
            yield from self._suspects(index, index, side, opened.views)

    def _content(self, index: int, value: Value) -> Iterator[Leftover]:
        views = open_body(value.content or b"", ()).views
        yield from self._suspects(index, None, f"value {value.what} {value.name}", views)

    def _url(self, index: int, url: bytes) -> Iterator[Leftover]:
        hidden = self._redactor.url(url)
        for part, better in zip(url.split(b"&"), hidden.split(b"&"), strict=False):
            value = _changed(part, better)
            if value and not is_placeholder(value.decode("latin-1")):
                yield self._found(index, index, "request URL", Suspect("name", "a secret in the URL", value))
        base, _, query = url.partition(b"?")
        views = [View("path", "", base), *open_body(query, _FORM).views] if query else [View("path", "", base)]
        yield from self._suspects(index, index, "request URL", views)

    def _headers(self, index: int, of: int, headers: Headers, where: str) -> Iterator[Leftover]:
        for (name, value), (_, better) in zip(headers, self._redactor.headers(headers), strict=True):
            called = name.decode("latin-1").lower()
            place = f"{where} {called}"
            if called in self._sought.headers and value and mask_tokens(value) != WILDCARD:
                yield self._found(index, of, place, Suspect("rule", f"the value of {called}", value))
                continue
            secret = _changed(value, better)
            if secret and not is_placeholder(secret.decode("latin-1")):
                yield self._found(index, of, place, Suspect("name", f"the value of {called}", secret))
            else:
                yield from self._suspects(index, of, place, [View("", called, value)])

    def _fields(self, index: int, of: int | None, fields: Json, where: str) -> Iterator[Leftover]:
        """Findings in the texts of a record, whatever fields it has."""
        texts: dict[str, Any] = {name: value for name, value in fields.items() if name not in _OWN_FIELDS}
        yield from self._suspects(index, of, where, leaves(texts))

    def _suspects(self, index: int, of: int | None, where: str, views: Iterable[View]) -> Iterator[Leftover]:
        seen: set[bytes] = set()
        for outer in views:
            known = hash((outer.name, outer.text))
            if known in self._clean:
                continue
            found = False
            for view in expand(outer):
                for suspect in suspects(view.text, view.name, self._sought):
                    found = True
                    if outer.joined and any(suspect.value in one for one in seen):
                        continue
                    seen.add(suspect.value)
                    yield self._found(index, of, f"{where} {view.place}".rstrip(), suspect)
            if not found and len(self._clean) < _CACHED:
                self._clean.add(known)

    def _found(self, index: int, of: int | None, place: str, suspect: Suspect) -> Leftover:
        exchange = None if of is None else self._exchanges.get(of)
        return Leftover(index, exchange, place, suspect.kind, suspect.what, suspect.value, suspect.name)


@dataclass(slots=True)
class _Bodies:
    """The bodies of an exchange under way, each with the headers that it came with."""

    asked: Headers
    request: bytearray
    answered: Headers = ()
    response: bytearray = field(default_factory=bytearray)
    said: bytearray = field(default_factory=bytearray)
    heard: bytearray = field(default_factory=bytearray)


MESSAGES: Final[Headers] = ((b"content-type", b"application/x-ndjson"),)
"""As what the texts on a WebSocket are read, one a line."""
_FORM: Final[Headers] = ((b"content-type", b"application/x-www-form-urlencoded"),)


def scan_leftovers(
    records: Iterable[tuple[int, Record]], redactor: Redactor, sought: Sought | None = None
) -> list[Leftover]:
    """Everything on a tape, given as numbered records, that looks like a secret."""
    scanner = LeftoverScanner(redactor, sought)
    found = [one for index, record in records for one in scanner.feed(index, record)]
    return [*found, *scanner.finish()]


def _changed(old: bytes, new: bytes) -> bytes:
    """What redaction took out of `old`: between what both begin and end with, and what was redacted before left out."""
    if old == new:
        return b""
    least = min(len(old), len(new))
    start = next((n for n in range(least) if old[n] != new[n]), least)
    # A token's first letters may be the secret's own, but no more than a few.
    rest = least - start
    end = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    value = old[start : len(old) - end]
    return b"" if len(mask_tokens(value)) < len(value) - MIN_LENGTH and mask_tokens(value) == WILDCARD else value


def _distinct(found: Iterable[Leftover]) -> Iterator[Leftover]:
    """Each finding once: one layer often shows what another did."""
    told: set[tuple[str, bytes]] = set()
    for one in found:
        outer = one.place.partition("→")[0]
        if (outer, one.value) not in told:
            told.add((outer, one.value))
            yield one


def _without(fields: Json, names: Iterable[str]) -> Json:
    return {name: value for name, value in fields.items() if name not in set(names)}
