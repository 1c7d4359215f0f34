"""A tape's records without the secrets that are on them: the decisions behind `scrub`. Knows no file and no clock.

First everything is scanned (`leftovers.py`); then what was found is replaced wherever it stands, in whatever layer of
encoding, by the tokens that recording would have put there. Each record keeps its number and its place, each chunk its
boundaries unless it was compressed.

A tape may be larger than memory: its records are gone through several times, and bodies that are not as they were are
kept by the caller's `Store`. One module, for what is found, what replaces it and what is told of it must agree.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from tapeproxy.tapes.codings import decode, header
from tapeproxy.tapes.eventstreams import with_checksums
from tapeproxy.tapes.filetext import redact_text
from tapeproxy.tapes.joinedtexts import joined_edits
from tapeproxy.tapes.leftovers import MESSAGES, Leftover, scan_leftovers
from tapeproxy.tapes.literals import Literals
from tapeproxy.tapes.parsing import parse_record
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import Chunks, End, Frame, Head, Headers, Json, Record, Request, Response, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.rewriting import octets_of
from tapeproxy.tapes.secretvars import is_secret_value
from tapeproxy.tapes.splicing import recut, splice
from tapeproxy.tapes.suspicion import Sought
from tapeproxy.tapes.tokens import WILDCARD, mask_tokens

_LENGTH: Final = b"content-length"
PASSES: Final = 3
"""How often `scrub` works on all records: it looks, replaces and looks again."""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """The clean `records`, numbered as before, and made anew each time they are gone through. `changed` are the numbers
    of those that are not as they were.

    `found` is what was replaced; `left` what still looks like a secret; `recompressed` are the numbers of exchanges
    with a body whose chunk boundaries were lost.
    """

    records: Iterable[Record]
    changed: frozenset[int]
    found: list[Leftover]
    left: list[Leftover]
    recompressed: tuple[int, ...] = ()


class Store(Protocol):
    """Keeps bytes, in memory or elsewhere."""

    def put(self, data: bytes, /) -> tuple[int, int]:
        """Keep them; returns how they are asked for."""
        ...

    def get(self, piece: tuple[int, int], /) -> bytes:
        """What was put."""
        ...


class _Memory:
    """A store in memory."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []

    def put(self, data: bytes, /) -> tuple[int, int]:
        self._kept.append(data)
        return len(self._kept) - 1, len(data)

    def get(self, piece: tuple[int, int], /) -> bytes:
        return self._kept[piece[0]]


def scrub(
    records: Iterable[Record],
    redactor: Redactor,
    sought: Sought | None = None,
    *,
    guesses: bool = False,
    store: Store | None = None,
    tell: Callable[[int], object] = lambda _: None,
) -> Scrubbed:
    """Replace every secret on a tape, given as its records in order without the seal.

    `records` gives the same ones whenever it is gone through. `guesses`: replace also what only looks random. Record
    numbers are places in `records`. `tell` is called with the octets of each record that is done (`octets_of`), in each
    of the PASSES over all of them.
    """
    sought = sought or Sought()
    looked_at = scan_leftovers(_told(records, tell), redactor, sought)
    found = [one for one in looked_at if guesses or one.kind != "random"]
    values, named = _sorted_out(found, sought)
    literals = Literals(redactor.secret, values, named, sought.patterns)
    clean = _Clean(records, _Scrubber(redactor, literals, sought.headers, store or _Memory()), tell)
    changed = frozenset(n for n, (old, new) in enumerate(clean.pairs()) if old != new)
    left = scan_leftovers(_told(clean, tell), redactor, sought) if changed else looked_at
    return Scrubbed(clean, changed, found, left, clean.recompressed)


def _told(records: Iterable[Record], tell: Callable[[int], object]) -> Iterator[tuple[int, Record]]:
    for index, record in enumerate(records):
        yield index, record
        tell(octets_of(record))


class _Clean:
    """The clean records of a tape. Its bodies are cleaned at once, its records whenever they are gone through."""

    def __init__(self, records: Iterable[Record], scrubber: "_Scrubber", tell: Callable[[int], object]) -> None:
        self._records = records
        self._scrubber = scrubber
        for exchange in _sides(records):
            scrubber.take(exchange)
            tell(sum(len(data) for _, _, data in (*exchange.up, *exchange.down)))

    @property
    def recompressed(self) -> tuple[int, ...]:
        return tuple(sorted(self._scrubber.recompressed))

    def __iter__(self) -> Iterator[Record]:
        return (new for _, new in self.pairs())

    def pairs(self) -> Iterator[tuple[Record, Record]]:
        """Each record as it was and as it is now."""
        return self._scrubber.clean(self._records)


def _sorted_out(found: Iterable[Leftover], sought: Sought) -> tuple[set[bytes], set[tuple[str, bytes]]]:
    """What is replaced wherever it stands, and what only under its name: that is too short, or too common."""
    values = {value for _, value in sought.values}
    named: set[tuple[str, bytes]] = set()
    for one in found:
        if one.what == "a password in a URL":
            named.add(("", one.value))
        elif one.kind == "known" or is_secret_value(one.value.decode("latin-1")):
            values.add(one.value)
        elif one.name:
            named.add((one.name, one.value))
    return values, named


@dataclass(slots=True)
class _Sides:
    """The pieces of an exchange's bodies: (record, part or -1 for a request's own body, bytes).

    `said` and `heard` are what passed on a WebSocket, to the server and to the client.
    """

    number: int
    request: int
    asked: Headers
    response: int | None = None
    answered: Headers = ()
    up: list[tuple[int, int, bytes]] = field(default_factory=list)
    down: list[tuple[int, int, bytes]] = field(default_factory=list)
    said: list[tuple[int, Frame]] = field(default_factory=list)
    heard: list[tuple[int, Frame]] = field(default_factory=list)


class _Scrubber:
    def __init__(self, redactor: Redactor, literals: Literals, headers: frozenset[str], store: Store) -> None:
        self._redactor = redactor
        self._literals = literals
        self._names = frozenset(name.encode() for name in headers)
        self._store = store
        self._bodies: dict[tuple[int, int], tuple[int, int]] = {}  # those that are not as they were
        self._lengths: dict[int, tuple[int, int]] = {}
        self._lines: set[int] = set()  # frames that were cleaned as lines of one body
        self._digests: dict[str, str] = {}
        self._seed = b""
        self._recoded: set[int] = set()
        self.recompressed: list[int] = []

    def take(self, exchange: _Sides) -> None:
        """Clean the bodies of an exchange."""
        for index, headers, pieces in (
            (exchange.request, exchange.asked, exchange.up),
            (exchange.response, exchange.answered, exchange.down),
        ):
            texts = [data for _, _, data in pieces]
            new, recoded = self._body(headers, texts)
            if recoded:
                self.recompressed.append(exchange.number)
                self._recoded.update(place for place, _, _ in pieces)
            for (record, part, old), data in zip(pieces, new, strict=True):
                self._keep(record, part, old, data)
            if index is not None and (sizes := (sum(map(len, texts)), sum(map(len, new))))[0] != sizes[1]:
                self._lengths[index] = sizes
        for frames in (exchange.said, exchange.heard):
            self._frames(frames)

    def _keep(self, index: int, part: int, old: bytes, new: bytes) -> None:
        if new != old:
            self._bodies[index, part] = self._store.put(new)

    def _kept(self, index: int, part: int, old: bytes) -> bytes:
        piece = self._bodies.get((index, part))
        return old if piece is None else self._store.get(piece)

    def clean(self, records: Iterable[Record]) -> Iterator[tuple[Record, Record]]:
        """The records of a tape, of which all exchanges were taken, each as it was and as it is now."""
        self._digests.clear()
        for index, record in enumerate(records):
            yield record, self._record(index, record)

    def _record(self, index: int, record: Record) -> Record:
        match record:
            case Head():
                self._seed = _key_of(record)
                return self._other(dataclasses.replace(record, argv=self._redactor.argv(record.argv)))
            case Request():
                small = self._other(dataclasses.replace(record, body=b"", url=b"", headers=()))
                assert isinstance(small, Request)
                url = self._literals.redact(self._redactor.url(record.url))
                headers = _with_length(self._headers(record.headers), *self._lengths.get(index, (0, 0)))
                body = self._kept(index, -1, _bytes(record.body))
                return dataclasses.replace(small, url=url, headers=headers, body=body)
            case Response():
                small = self._other(dataclasses.replace(record, headers=(), informational=()))
                assert isinstance(small, Response)
                headers = _with_length(self._headers(record.headers), *self._lengths.get(index, (0, 0)))
                early = tuple((status, self._headers(given)) for status, given in record.informational)
                return dataclasses.replace(small, headers=headers, informational=early)
            case Chunks():
                parts = [(dt, self._kept(index, n, _bytes(data))) for n, (dt, data) in enumerate(record.parts)]
                # An empty chunk would end a chunked body.
                kept = tuple(
                    (dt, new) for (dt, new), (_, old) in zip(parts, record.parts, strict=True) if new or not old
                )
                return dataclasses.replace(record, parts=kept, recoded=record.recoded or index in self._recoded)
            case Frame():
                lone = index not in self._lines
                small = self._other(dataclasses.replace(record, data=b""))
                assert isinstance(small, Frame)
                data = self._bytes(record.data) if lone else self._kept(index, -1, record.data)
                return dataclasses.replace(small, data=data)
            case Value():
                return self._value(record)
            case _:
                return self._other(record)

    def _frames(self, frames: Sequence[tuple[int, Frame]]) -> None:
        """Clean the data of one direction of a WebSocket as lines of one body."""
        lines = [frame.data + b"\n" if frame.open is None else frame.data for _, frame in frames]
        new = self._text(lines, MESSAGES) if lines else []
        for (index, frame), data in zip(frames, new, strict=True):
            self._lines.add(index)
            self._keep(index, -1, frame.data, data.removesuffix(b"\n") if frame.open is None else data)

    def _bytes(self, data: bytes) -> bytes:
        return self._redactor.content(self._literals.redact(data))

    def _body(self, headers: Headers, pieces: list[bytes]) -> tuple[list[bytes], bool]:
        """The pieces of a body, cleaned, as many as they were; and whether it had to be compressed anew for that."""
        whole = b"".join(pieces)
        if not whole:
            return pieces, False
        decoded = decode(whole, headers)
        if decoded.coding:
            text = self._text([decoded.data], headers)[0]
            if text == decoded.data:
                return pieces, False
            return recut(pieces, encode(text, decoded.coding)), True
        return self._text(pieces, headers), False

    def _text(self, pieces: list[bytes], headers: Headers) -> list[bytes]:
        """A body without its content coding: what was found anywhere is replaced, then what recording would replace."""
        kind = header(headers, b"content-type").lower()
        before = b"".join(pieces)
        pieces = splice(pieces, self._literals.edits(before))
        # What is split over events is looked for in what the first pass has left.
        pieces = splice(pieces, joined_edits(b"".join(pieces), kind, self._literals.edits))
        if b"vnd.amazon.eventstream" in kind:
            pieces = recut(pieces, with_checksums(before, b"".join(pieces)))
        return self._as_recorded(pieces, tuple(h for h in headers if h[0].lower() != b"content-encoding"))

    def _as_recorded(self, pieces: list[bytes], headers: Headers) -> list[bytes]:
        stream = self._redactor.stream(headers)
        fed = [timed for n, piece in enumerate(pieces) for timed in stream.feed(n, piece)]
        out = [*fed, *stream.finish()]
        if [n for n, _ in out] == list(range(len(pieces))):
            return [data for _, data in out]
        return recut(pieces, b"".join(data for _, data in out))

    def _headers(self, headers: Headers) -> Headers:
        own = ((name, self._own(name, value)) for name, value in headers)
        return tuple((name, self._literals.redact(value)) for name, value in self._redactor.headers(tuple(own)))

    def _own(self, name: bytes, value: bytes) -> bytes:
        hidden = name.lower() in self._names and mask_tokens(value) != WILDCARD
        return self._redactor.secret(value) if hidden else value

    def _value(self, value: Value) -> Value:
        """A value as a replay will redact what is read then, and without what was found elsewhere."""
        if value.what in ("process", "exit"):
            value = dataclasses.replace(value, name=" ".join(self._redactor.argv(value.name.split(" "))))
        small = self._other(dataclasses.replace(value, content=None))
        assert isinstance(small, Value)
        if value.content is None:
            # The content stands on an earlier line, and its digest there may be that of the clean one.
            digest = None if value.digest is None else self._digests.get(value.digest, value.digest)
            return dataclasses.replace(small, digest=digest)
        content = redact_text(self._text([value.content], ())[0], self._redactor)
        if content == value.content:
            return dataclasses.replace(small, content=content)
        digest = hashlib.blake2b(content, key=self._seed, digest_size=16).hexdigest()
        self._digests[value.digest or ""] = digest
        return dataclasses.replace(small, content=content, length=len(content), digest=digest)

    def _other(self, record: Any) -> Record:
        """A record with every text on it cleaned, whatever its fields."""
        fields: Json = record.to_json()
        clean = self._json(fields)
        return record if clean == fields else parse_record({"k": record.kind} | orjson.loads(orjson.dumps(clean)))

    def _json(self, value: Any) -> Any:
        if isinstance(value, str):
            raw = value.encode(errors="surrogatepass")
            return self._redactor.content(self._literals.redact(raw)).decode(errors="surrogatepass")
        if isinstance(value, dict):
            return {self._json(key): self._json(item) for key, item in value.items()}
        return type(value)(map(self._json, value)) if isinstance(value, list | tuple) else value


def _key_of(head: Head) -> bytes:
    """What digests are keyed with; of a seed that is none, nothing."""
    try:
        return bytes.fromhex(head.seed or "")[: hashlib.blake2b.MAX_KEY_SIZE]
    except ValueError:
        return b""


def _sides(records: Iterable[Record]) -> Iterator[_Sides]:
    """The exchanges of a tape, each when it has ended; those without an end at last."""
    by_request: dict[int, _Sides] = {}
    number = 0
    for index, record in enumerate(records):
        if isinstance(record, Request):
            number += 1
            by_request[index] = _Sides(number, index, record.headers, up=[(index, -1, _bytes(record.body))])
        elif isinstance(record, Response) and record.of in by_request:
            by_request[record.of].response = index
            by_request[record.of].answered = record.headers
        elif isinstance(record, End) and record.of in by_request:
            yield by_request.pop(record.of)
        elif isinstance(record, Chunks) and record.of in by_request:
            sides = by_request[record.of]
            pieces = sides.down if record.to == "client" else sides.up
            pieces += [(index, n, _bytes(data)) for n, (_, data) in enumerate(record.parts)]
        elif isinstance(record, Frame) and record.of in by_request and record.type in ("text", "binary"):
            sides = by_request[record.of]
            (sides.heard if record.to == "client" else sides.said).append((index, record))
    yield from by_request.values()


def _bytes(data: object) -> bytes:
    assert isinstance(data, bytes)  # the decoder resolves references
    return data


def _with_length(headers: Headers, old: int, new: int) -> Headers:
    """The headers with the length put right of a body that had the length they said."""
    if old == new:
        return headers
    was = b"%d" % old
    return tuple((n, b"%d" % new if n.lower() == _LENGTH and v.strip() == was else v) for n, v in headers)
