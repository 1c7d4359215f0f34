"""From the bytes of a tape file to typed records; trusts nothing it reads, opens nothing.

Feed it bytes in pieces of any size. Every line's hash is checked before its record is given out, references between
bodies are resolved, and hostile input meets a limit. What is wrong raises TapeFormatError with the place, after every
record in front of it has been given out, whatever the pieces; a file that merely stops is read up to its last whole
line, and `finish` says so.
"""

import dataclasses
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from blake3 import blake3

from tapeproxy.tapes.bodies import FORMS, MAX_EXPANDED, BodyStore, allowance
from tapeproxy.tapes.chain import MAX_LINE, START, link, open_line
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.gzipping import MAX_RATIO, Inflater, stored_member
from tapeproxy.tapes.parsing import RecordError, parse_record
from tapeproxy.tapes.records import FORMAT_VERSION, Chunks, Head, Json, Like, Record, Request, Seal

FEATURES = FORMS
"""What a head's `must` may name for this version to read the tape."""

_UPGRADE = "install a newer tapeproxy to read it"
_APPENDED = "there is a record after the seal: something was appended to a finished tape"
_RESTORE = "the records before it are intact; take the tape again from where it came"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tape may ask of its reader; the encoder stays within the defaults.

    Bytes: `line` of one line, `bodies` of all bodies built from references. `ratio` is plain to compressed, checked
    past the first `free` plain bytes; `members` are gzip members.
    """

    line: int = MAX_LINE
    ratio: int = MAX_RATIO
    free: int = 16 << 20
    members: int = 1 << 16
    bodies: int = MAX_EXPANDED


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its place: `index` from 0, the line's 32 `hash` bytes and its plain `size` with the newline.

    Bodies are resolved; `like` is how that of a request stands on the line, where it is a reference.
    """

    index: int
    hash: bytes
    size: int
    record: Record
    like: Like | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a tape file ends.

    `sealed`: the last record is a seal. `canonical`: the file is, bit for bit, what its writer wrote (only a sealed
    tape can say so). `lost`: plain bytes after the last whole line, dropped. `hash`: the last line's, `file`: that
    of all bytes that were read, both in hex.
    """

    sealed: bool
    canonical: bool
    records: int
    lost: int
    hash: str
    file: str = ""


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
        self._seal_line = b""
        # For the canonical form: all file bytes, and those before the member that the seal came from.
        self._file = blake3()
        self._before = self._file.copy()

    @property
    def plain(self) -> int:
        """Bytes of text inflated so far."""
        return self._plain

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Yield the records that `data` completes. Exhaust it before feeding more. Raises TapeFormatError."""
        self._inflater.feed(data)
        while (text := self._read()) is not None:
            self._file.update(self._inflater.taken)
            if text:
                self._guard(len(text))
                yield from self._split(text)
            if not self._inflater.open:
                self._end_member()

    def finish(self) -> Ending:
        """Say how the file ended. Raises TapeFormatError when it holds not even a head."""
        if self._index == 0:
            raise TapeFormatError(
                "this is not a tape, or it was cut before its first record was written",
                place=Place(self._source),
                fix="a tape is gzip over JSON lines and begins with a head record (docs/FORMAT.md)",
            )
        return Ending(
            self._seal is not None,
            self._canonical(),
            self._index,
            len(self._line),
            self._hash.hex(),
            self._file.hexdigest(),
        )

    def _canonical(self) -> bool:
        if self._seal is None or self._seal.file != self._before.hexdigest():
            return False
        written = self._before.copy().update(stored_member(self._seal_line))
        return written.digest() == self._file.digest()

    def _read(self) -> bytes | None:
        try:
            return self._inflater.read()
        except zlib.error as error:
            at = self._inflater.consumed
            if self._inflater.members and at < self._inflater.began + 10:
                what = f"what follows byte {self._inflater.began} is not gzip: something was appended"
            elif self._index or self._inflater.members:
                what = f"the compressed data is damaged near byte {at}: {error}"
            else:
                what = f"this is not a tape: it is not gzip, or damaged near byte {at} ({error})"
            raise self._wrong(what, fix=_RESTORE if self._index else "") from None

    def _end_member(self) -> None:
        if self._seal is None:
            self._before = self._file.copy()
        if self._inflater.members > self._limits.members:
            raise self._wrong(f"the file has more than {self._limits.members} gzip members")

    def _guard(self, more: int) -> None:
        self._plain += more
        if self._plain > self._limits.free and self._plain > self._limits.ratio * self._inflater.consumed:
            raise self._wrong(
                f"the file inflates more than {self._limits.ratio} times: refused as a decompression bomb",
                fix="no tape does as tapeproxy writes it; if this one was recompressed, take the original",
            )

    def _split(self, text: bytes) -> Iterator[Entry]:
        lines = text.split(b"\n")
        for piece in lines[:-1]:
            line = bytes(self._line) + piece if self._line else piece
            self._line.clear()
            self._measure(line)
            yield self._decode(line)
        self._line += lines[-1]
        self._measure(self._line)
        if self._line and self._seal is not None:
            raise self._wrong(_APPENDED)

    def _measure(self, line: bytes | bytearray) -> None:
        if len(line) > self._limits.line:
            raise self._wrong(f"the line is longer than {self._limits.line} bytes")

    def _decode(self, line: bytes) -> Entry:
        if self._seal is not None:
            raise self._wrong(_APPENDED)
        obj = self._parse(line)
        if self._index == 0:
            self._check_head(obj)
        elif obj.get("k") == "head":
            raise self._wrong("there is a second head: two tapes were joined")
        self._check_hash(line)
        number = obj.get("i")
        if type(number) is not int or number != self._index:
            raise self._wrong(f"the record says it is number {_clip(number)}, not {self._index}")
        record, like = self._build(obj)
        if isinstance(record, Head):
            self._bodies = BodyStore(self._limits.bodies, record.must, record.window)
        elif isinstance(record, Seal):
            if record.records != self._index:
                raise self._wrong(f"the seal counts {record.records} records before it, not {self._index}")
            self._seal, self._seal_line = record, line + b"\n"
        self._index += 1
        return Entry(self._index - 1, self._hash, len(line) + 1, record, like)

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
            raise self._wrong(f"the head gives no format version ('tape' is {_clip(version)})")
        by = _clip(obj["by"]) if obj.get("by") else "an unknown version"
        if version > FORMAT_VERSION:
            what = f"the tape has format {version}, written by {by}; this version reads up to format {FORMAT_VERSION}"
            raise self._wrong(what, fix=_UPGRADE)
        must = obj.get("must", [])
        if not isinstance(must, list):
            raise self._wrong(f"the head's 'must' is not a list but {_clip(must)}")
        if missing := [feature for feature in must if not isinstance(feature, str) or feature not in FEATURES]:
            names = ", ".join(map(_clip, missing[:5]))
            raise self._wrong(f"the tape, written by {by}, cannot be read without understanding {names}", fix=_UPGRADE)

    def _check_hash(self, line: bytes) -> None:
        parts = open_line(line)
        if parts is None:
            raise self._wrong("the line does not end in its hash: it was changed", fix=_RESTORE)
        digest = link(self._hash, parts[0])
        if parts[1] != digest.hex().encode():
            what = "the hash does not fit: this line was changed, or one before it was removed, added or moved"
            raise self._wrong(what, fix=_RESTORE)
        self._hash = digest

    def _build(self, obj: Json) -> tuple[Record, Like | None]:
        self._bodies.limit = min(self._limits.bodies, allowance(self._inflater.consumed))
        try:
            record = parse_record(obj)
            if isinstance(record, Request):
                body = self._bodies.keep(self._index, (record.body,))[0]
                if isinstance(record.body, Like):
                    return dataclasses.replace(record, body=body), record.body
                return record, None
            if isinstance(record, Chunks):
                given = tuple(part for _, part in record.parts)
                bodies = self._bodies.keep(self._index, given, request=False)
                if any(body is not part for body, part in zip(bodies, given, strict=True)):
                    times = (dt for dt, _ in record.parts)
                    return dataclasses.replace(record, parts=tuple(zip(times, bodies, strict=True))), None
        except RecordError as error:
            raise self._wrong(str(error)) from None
        except ValueError as error:
            raise self._wrong(f"the body cannot be built: {error}") from None
        return record, None

    def _wrong(self, what: str, fix: str = "") -> TapeFormatError:
        return TapeFormatError(what, place=Place(self._source, self._index + 1), fix=fix)


def _clip(value: object) -> str:
    # What a hostile tape says goes to a terminal: escaped, and not at length or depth.
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return ascii(value if not isinstance(value, str) or len(value) <= 80 else value[:77] + "...")
