"""A tape's records without the secrets that are on them: the decisions behind `scrub`. Knows no file and no clock.

First everything is scanned (`leftovers.py`); then what was found is replaced wherever it stands, in whatever layer of
encoding, by the tokens that recording would have put there. Each record keeps its number and its place, each chunk its
boundaries unless it was compressed.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from tapeproxy.tapes.codings import decode, header
from tapeproxy.tapes.eventstreams import with_checksums
from tapeproxy.tapes.filetext import redact_text
from tapeproxy.tapes.joinedtexts import joined_edits
from tapeproxy.tapes.leftovers import MESSAGES, Leftover, scan_leftovers
from tapeproxy.tapes.literals import Literals
from tapeproxy.tapes.parsing import parse_record
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import Chunks, Frame, Head, Headers, Json, Record, Request, Response, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.rewriting import octets_of
from tapeproxy.tapes.secretvars import is_secret_value
from tapeproxy.tapes.splicing import recut, splice
from tapeproxy.tapes.suspicion import Sought
from tapeproxy.tapes.tokens import WILDCARD, mask_tokens

_LENGTH: Final = b"content-length"
PASSES: Final = 3
"""How often `scrub` goes over all records: it looks, replaces and looks again."""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """The clean `records`, numbered as before. `changed` are the numbers of those that are not as they were.

    `found` is what was replaced; `left` what still looks like a secret; `recompressed` are the numbers of exchanges
    with a body whose chunk boundaries were lost.
    """

    records: list[Record]
    changed: frozenset[int]
    found: list[Leftover]
    left: list[Leftover]
    recompressed: tuple[int, ...] = ()


def scrub(
    records: Sequence[Record],
    redactor: Redactor,
    sought: Sought | None = None,
    *,
    guesses: bool = False,
    tell: Callable[[int], object] = lambda _: None,
) -> Scrubbed:
    """Replace every secret on a tape, given as its records in order without the seal.

    `guesses`: replace also what only looks random. Record numbers are places in `records`. `tell` is called with the
    octets of each record that is done (`octets_of`), in each of the PASSES over all of them.
    """
    sought = sought or Sought()
    looked_at = scan_leftovers(_told(records, tell), redactor, sought)
    found = [one for one in looked_at if guesses or one.kind != "random"]
    values, named = _sorted_out(found, sought)
    scrubber = _Scrubber(redactor, Literals(redactor.secret, values, named, sought.patterns), sought.headers)
    clean = scrubber.clean(records, tell)
    changed = frozenset(n for n, (old, new) in enumerate(zip(records, clean, strict=True)) if old != new)
    left = scan_leftovers(_told(clean, tell), redactor, sought) if changed else looked_at
    return Scrubbed(clean, changed, found, left, tuple(scrubber.recompressed))


def _told(records: Sequence[Record], tell: Callable[[int], object]) -> Iterator[tuple[int, Record]]:
    for index, record in enumerate(records):
        yield index, record
        tell(octets_of(record))


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

    request: int
    response: int | None = None
    up: list[tuple[int, int, bytes]] = field(default_factory=list)
    down: list[tuple[int, int, bytes]] = field(default_factory=list)
    said: list[tuple[int, Frame]] = field(default_factory=list)
    heard: list[tuple[int, Frame]] = field(default_factory=list)


class _Scrubber:
    def __init__(self, redactor: Redactor, literals: Literals, headers: frozenset[str]) -> None:
        self._redactor = redactor
        self._literals = literals
        self._names = frozenset(name.encode() for name in headers)
        self._digests: dict[str, str] = {}
        self._seed = b""
        self._recoded: set[int] = set()
        self.recompressed: list[int] = []

    def clean(self, records: Sequence[Record], tell: Callable[[int], object]) -> list[Record]:
        sides = _sides(records)
        bodies: dict[tuple[int, int], bytes] = {}
        lengths: dict[int, tuple[int, int]] = {}
        for number, exchange in enumerate(sides, 1):
            asked = records[exchange.request]
            answered = None if exchange.response is None else records[exchange.response]
            for index, record, pieces in (
                (exchange.request, asked, exchange.up),
                (exchange.response, answered, exchange.down),
            ):
                headers = record.headers if isinstance(record, Request | Response) else ()
                texts = [data for _, _, data in pieces]
                new, recoded = self._body(headers, texts)
                if recoded:
                    self.recompressed.append(number)
                    self._recoded.update(place for place, _, _ in pieces)
                bodies |= {(record, part): data for (record, part, _), data in zip(pieces, new, strict=True)}
                if index is not None:
                    lengths[index] = (sum(map(len, texts)), sum(map(len, new)))
            for frames in (exchange.said, exchange.heard):
                bodies |= self._frames(frames)
            tell(sum(len(data) for _, _, data in (*exchange.up, *exchange.down)))
        return [self._record(index, record, bodies, lengths) for index, record in enumerate(records)]

    def _record(
        self,
        index: int,
        record: Record,
        bodies: dict[tuple[int, int], bytes],
        lengths: dict[int, tuple[int, int]],
    ) -> Record:
        match record:
            case Head():
                self._seed = _key_of(record)
                return self._other(dataclasses.replace(record, argv=self._redactor.argv(record.argv)))
            case Request():
                small = self._other(dataclasses.replace(record, body=b"", url=b"", headers=()))
                assert isinstance(small, Request)
                url = self._literals.redact(self._redactor.url(record.url))
                headers = _with_length(self._headers(record.headers), *lengths[index])
                return dataclasses.replace(small, url=url, headers=headers, body=bodies[index, -1])
            case Response():
                small = self._other(dataclasses.replace(record, headers=(), informational=()))
                assert isinstance(small, Response)
                headers = _with_length(self._headers(record.headers), *lengths.get(index, (0, 0)))
                early = tuple((status, self._headers(given)) for status, given in record.informational)
                return dataclasses.replace(small, headers=headers, informational=early)
            case Chunks():
                parts = [(dt, bodies.get((index, n), data)) for n, (dt, data) in enumerate(record.parts)]
                # An empty chunk would end a chunked body.
                kept = tuple(
                    (dt, new) for (dt, new), (_, old) in zip(parts, record.parts, strict=True) if new or not old
                )
                return dataclasses.replace(record, parts=kept, recoded=record.recoded or index in self._recoded)
            case Frame():
                data = bodies.get((index, -1))
                small = self._other(dataclasses.replace(record, data=b""))
                assert isinstance(small, Frame)
                return dataclasses.replace(small, data=self._bytes(record.data) if data is None else data)
            case Value():
                return self._value(record)
            case _:
                return self._other(record)

    def _frames(self, frames: Sequence[tuple[int, Frame]]) -> dict[tuple[int, int], bytes]:
        """The data of one direction of a WebSocket, cleaned as lines of one body."""
        lines = [frame.data + b"\n" if frame.open is None else frame.data for _, frame in frames]
        new = self._text(lines, MESSAGES) if lines else []
        return {
            (index, -1): data.removesuffix(b"\n") if frame.open is None else data
            for (index, frame), data in zip(frames, new, strict=True)
        }

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


def _sides(records: Sequence[Record]) -> list[_Sides]:
    by_request: dict[int, _Sides] = {}
    for index, record in enumerate(records):
        if isinstance(record, Request):
            by_request[index] = _Sides(index, up=[(index, -1, _bytes(record.body))])
        elif isinstance(record, Response) and record.of in by_request:
            by_request[record.of].response = index
        elif isinstance(record, Chunks) and record.of in by_request:
            sides = by_request[record.of]
            pieces = sides.down if record.to == "client" else sides.up
            pieces += [(index, n, _bytes(data)) for n, (_, data) in enumerate(record.parts)]
        elif isinstance(record, Frame) and record.of in by_request and record.type in ("text", "binary"):
            sides = by_request[record.of]
            (sides.heard if record.to == "client" else sides.said).append((index, record))
    return list(by_request.values())


def _bytes(data: object) -> bytes:
    assert isinstance(data, bytes)  # the decoder resolves references
    return data


def _with_length(headers: Headers, old: int, new: int) -> Headers:
    """The headers with the length put right of a body that had the length they said."""
    if old == new:
        return headers
    was = b"%d" % old
    return tuple((n, b"%d" % new if n.lower() == _LENGTH and v.strip() == was else v) for n, v in headers)
