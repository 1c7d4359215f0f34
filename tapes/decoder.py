"""From the bytes of a tape file to typed records; trusts nothing it reads, opens nothing.

Feed it bytes in pieces of any size. Every line's hash is checked before its record is given out, references between
bodies are resolved, and hostile input meets a limit. What is wrong raises TapeFormatError with the place; a file that
merely stops is read up to its last whole line, and `finish` says so.
"""

import dataclasses
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from blake3 import blake3

from tapeproxy.tapes.bodies import BodyStore
from tapeproxy.tapes.chain import START, link, open_line
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.gzipping import Inflater, stored_member
from tapeproxy.tapes.parsing import RecordError, parse_record
from tapeproxy.tapes.records import FORMAT_VERSION, Chunks, Head, Json, Record, Request, Seal

FEATURES = frozenset({"like", "ref"})
"""What a head's `must` may name for this version to read the tape."""

_UPGRADE = "install a newer tapeproxy to read it"
_RESTORE = "the records before it are intact; take the tape again from where it came"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tape may ask of its reader. Sizes in bytes; `ratio` is plain to compressed, past the first `free`."""

    line: int = 256 << 20
    ratio: int = 400
    free: int = 64 << 20
    bodies: int = 8 << 30


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its place: `index` from 0, the line's 32 `hash` bytes and its plain `size` with the newline."""

    index: int
    hash: bytes
    size: int
    record: Record


@dataclass(frozen=True, slots=True)
class Ending:
    """How a tape file ends.

    `sealed`: the last record is a seal. `canonical`: the file is, bit for bit, what its writer wrote (only a sealed
    tape can say so). `lost`: plain bytes after the last whole line, dropped. `hash`: the last line's, in hex.
    """

    sealed: bool
    canonical: bool
    records: int
    lost: int
    hash: str


class TapeDecoder:
    """Reads one tape. `source` names it in errors."""

    def __init__(self, source: str = "tape", limits: Limits | None = None) -> None:
        self._source = source
        self._limits = limits or Limits()
        self._inflater = Inflater()
        self._bodies = BodyStore(self._limits.bodies)
        self._line = bytearray()
        self._plain = 0
        self._hash = START
        self._index = 0
        self._seal: Seal | None = None
        # For the canonical form: the hash of all file bytes before the open member, and that member's bytes.
        self._file = blake3()
        self._before = self._file.digest()
        self._member = bytearray()
        self._seal_line = b""

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Yield the records that `data` completes. Exhaust it before feeding more. Raises TapeFormatError."""
        self._inflater.feed(data)
        start, base = self._inflater.consumed, 0
        while True:
            members = self._inflater.members
            try:
                text = self._inflater.read()
            except zlib.error as error:
                raise self._wrong(
                    f"the compressed data is damaged near byte {self._inflater.consumed}: {error}"
                ) from None
            used = self._inflater.consumed - start
            self._member += data[base:used]
            base = used
            if text:
                self._guard(len(text))
                yield from self._split(text)
            if self._inflater.members != members:
                self._close_member()
            elif not text:
                return

    def finish(self) -> Ending:
        """Say how the file ended. Raises TapeFormatError when it holds not even a head."""
        if self._index == 0:
            raise TapeFormatError(
                "this is not a tape, or it was cut before its first record was written",
                place=Place(self._source),
                fix="a tape is gzip over JSON lines and begins with a head record (docs/FORMAT.md)",
            )
        canonical = (
            self._seal is not None
            and not self._inflater.open
            and not self._line
            and bytes(self._member) == stored_member(self._seal_line)
            and self._seal.file == self._before.hex()
        )
        return Ending(self._seal is not None, canonical, self._index, len(self._line), self._hash.hex())

    def _close_member(self) -> None:
        # The seal's member is the last one and stays in `_member` for `finish`.
        if self._seal is None:
            self._file.update(bytes(self._member))
            self._before = self._file.digest()
            self._member.clear()

    def _guard(self, more: int) -> None:
        self._plain += more
        if self._plain > self._limits.free and self._plain > self._limits.ratio * self._inflater.consumed:
            raise self._wrong(
                f"the file inflates more than {self._limits.ratio} times: refused as a decompression bomb",
                fix="if it is a real tape, recompress it: zcat TAPE | gzip -1 > NEW.tape.jsonl.gz",
            )

    def _split(self, text: bytes) -> Iterator[Entry]:
        lines = text.split(b"\n")
        for piece in lines[:-1]:
            line = bytes(self._line) + piece if self._line else piece
            self._line.clear()
            yield self._decode(line)
        self._line += lines[-1]
        if len(self._line) > self._limits.line:
            raise self._wrong(f"the line is longer than {self._limits.line} bytes")

    def _decode(self, line: bytes) -> Entry:
        if self._seal is not None:
            raise self._wrong("there is a record after the seal: something was appended to a finished tape")
        obj = self._parse(line)
        if self._index == 0:
            self._check_head(obj)
        self._check_hash(line)
        if obj.get("i") != self._index:
            raise self._wrong(f"the record says it is number {obj.get('i')!r}, not {self._index}")
        record = self._build(obj)
        if isinstance(record, Seal):
            if record.records != self._index:
                raise self._wrong(f"the seal counts {record.records} records before it, not {self._index}")
            self._seal, self._seal_line = record, line + b"\n"
        self._index += 1
        return Entry(self._index - 1, self._hash, len(line) + 1, record)

    def _parse(self, line: bytes) -> Json:
        try:
            obj: Any = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._wrong(f"the line is not JSON ({error})") from None
        if not isinstance(obj, dict):
            raise self._wrong("the line is not a JSON object")
        return obj

    def _check_head(self, obj: Json) -> None:
        if obj.get("k") != "head":
            raise self._wrong("this is not a tape: its first record is not a head")
        version = obj.get("tape")
        if type(version) is not int or version < 1:
            raise self._wrong(f"the head gives no format version ('tape' is {version!r})")
        by = obj.get("by") or "an unknown version"
        if version > FORMAT_VERSION:
            what = f"the tape has format {version}, written by {by}; this version reads up to format {FORMAT_VERSION}"
            raise self._wrong(what, fix=_UPGRADE)
        must = obj.get("must", [])
        missing = [feature for feature in must if feature not in FEATURES] if isinstance(must, list) else [must]
        if missing:
            names = ", ".join(map(repr, missing))
            raise self._wrong(f"the tape, written by {by}, cannot be read without understanding {names}", fix=_UPGRADE)

    def _check_hash(self, line: bytes) -> None:
        parts = open_line(line)
        if parts is None:
            raise self._wrong("the line does not end in its hash: it was changed", fix=_RESTORE)
        digest = link(self._hash, parts[0])
        if parts[1] != digest.hex():
            what = "the hash does not fit: this line was changed, or one before it was removed, added or moved"
            raise self._wrong(what, fix=_RESTORE)
        self._hash = digest

    def _build(self, obj: Json) -> Record:
        try:
            record = parse_record(obj)
            if isinstance(record, Head) and self._index:
                raise self._wrong("there is a second head: two tapes were joined")
            if isinstance(record, Request):
                body = self._bodies.keep(self._index, (record.body,))[0]
                return record if body is record.body else dataclasses.replace(record, body=body)
            if isinstance(record, Chunks):
                given = tuple(part for _, part in record.parts)
                bodies = self._bodies.keep(self._index, given)
                if any(body is not part for body, part in zip(bodies, given, strict=True)):
                    times = (dt for dt, _ in record.parts)
                    return dataclasses.replace(record, parts=tuple(zip(times, bodies, strict=True)))
        except RecordError as error:
            raise self._wrong(str(error)) from None
        except ValueError as error:
            raise self._wrong(f"the body cannot be built: {error}") from None
        return record

    def _wrong(self, what: str, fix: str = "") -> TapeFormatError:
        return TapeFormatError(what, place=Place(self._source, self._index + 1), fix=fix)
