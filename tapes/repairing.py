"""Closing a tape that was interrupted: what is kept, what is added, how it reads. Opens nothing and invents nothing.

The lines that the chain proves are kept as they are, byte for byte, so that their hashes stay what they were. After
them come what the shims had written and nobody had taped yet, a note that says what was done, and a seal. An exchange
that had no end gets none.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson
from blake3 import blake3

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.gzipping import Inflater
from tapeproxy.tapes.hosts import is_mcp_stdio
from tapeproxy.tapes.outcomes import REPAIRED
from tapeproxy.tapes.records import (
    Chunks,
    Clock,
    Done,
    Edge,
    End,
    Env,
    Exit,
    Frame,
    Head,
    Json,
    Lane,
    LaneEnd,
    Note,
    Record,
    Request,
    Response,
    Seal,
    Value,
)
from tapeproxy.tapes.trace import TraceHasher

_FROM_SIDECARS = (Lane, Clock, LaneEnd, Done, Env, Value, Edge, Note)
_TIMED = (Request, Response, Chunks, Frame, End, Exit, *_FROM_SIDECARS)


@dataclass(slots=True)
class Kept:
    """What a repair keeps of a tape, gathered line by line: all before the seal, if there is one.

    `size` is the lines' plain bytes, `hash` the last one's, `t` the latest time on them; `unended` exchanges have no
    end. `sealed`: there was a seal (and something after it).
    """

    source: str = "tape"
    head: Head = field(default_factory=Head)
    records: int = 0
    size: int = 0
    hash: bytes = b""
    t: int = 0
    exchanges: int = 0
    ended: int = 0
    sealed: bool = False
    trace: TraceHasher = field(default_factory=TraceHasher)
    servers: "ServerRecords" = field(init=False)
    _shims: Counter[bytes] = field(default_factory=Counter[bytes])

    def __post_init__(self) -> None:
        self.servers = ServerRecords(self)

    @property
    def unended(self) -> int:
        return self.exchanges - self.ended

    def see(self, entry: Entry) -> None:
        """Take the next line. Raises TapeFormatError for a request without an identity, which none can replay."""
        record = entry.record
        if isinstance(record, Seal):
            self.sealed = True
            return
        try:
            self.trace.feed(entry.index, record)
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(self.source, entry.index + 1)) from None
        self.records, self.size, self.hash = entry.index + 1, self.size + entry.size, entry.hash
        if isinstance(record, Head):
            self.head = record
        self.count(record)
        self.servers.see(entry.index, record)
        if isinstance(record, _TIMED):
            self.t = max(self.t, record.t)
        if isinstance(record, _FROM_SIDECARS):
            self._shims[_mark(record)] += 1

    def count(self, record: Record) -> None:
        """Take note of an exchange that begins or ends."""
        self.exchanges += isinstance(record, Request)
        self.ended += isinstance(record, End)

    def lacks(self, record: Record) -> bool:
        """Whether a record of a shim's is not on the tape. Ask once for each: one that is there counts once."""
        mark = _mark(record)
        if self._shims[mark]:
            self._shims[mark] -= 1
            return False
        return True


class ServerRecords:
    """The records of MCP servers on stdio: those that a tape has, and those that its sidecar files have beyond.

    They are made once more of the sidecar's lines, in their order, and `add` passes over those that are there. What is
    new is in `added`, which follows the tape's last record at once.
    """

    def __init__(self, kept: Kept) -> None:
        self.added: list[Record] = []
        self.taped = 0
        self._kept = kept
        self._requests: defaultdict[bytes, deque[int]] = defaultdict(deque)
        self._parts: Counter[int] = Counter()
        self._indexes: set[int] = set()

    def see(self, index: int, record: Record) -> None:
        """Take note of a record of the tape."""
        if isinstance(record, Request) and is_mcp_stdio(_host(record.url)):
            self._requests[_digest(record)].append(index)
            self._indexes.add(index)
            self.taped += 1
        elif isinstance(record, Response | Chunks | End) and record.of in self._indexes:
            self._parts[record.of] += 1

    def add(self, record: Record) -> int:
        """The number of a record, which is added if the tape has it not."""
        if isinstance(record, Request):
            if there := self._requests[_digest(record)]:
                return there.popleft()
        elif isinstance(record, Response | Chunks | End) and self._parts[record.of]:
            self._parts[record.of] -= 1
            return record.of
        index = self._kept.records + len(self.added)
        self.added.append(record)
        self._kept.count(record)
        self._kept.trace.feed(index, record)
        return index


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What a repair could not keep: plain bytes of an unfinished line, lines of the shims (unfinished, or with texts
    whose secrets can't be redacted any more), and why the tape could not be read on, if it was damaged.
    """

    bytes: int = 0
    shim_lines: int = 0
    damage: str = ""


def closing_note(kept: Kept, losses: Losses, merged: int) -> Note:
    """The note before the seal: what was done, in words and numbers. `merged`: records of the shims that were added."""
    facts = list(told(kept, losses, merged))
    data: Json = {
        "kept": kept.records,
        "lost_bytes": losses.bytes,
        "lost_shim_lines": losses.shim_lines,
        "merged": merged,
        "unended": kept.unended,
    }
    if losses.damage:
        data |= {"damage": losses.damage}
    return Note(t=kept.t, what=REPAIRED, text="; ".join(facts), data=data)


def told(kept: Kept, losses: Losses, merged: int) -> Iterator[str]:
    """What a repair did, fact by fact."""
    yield f"{_count(kept.records, 'record')} kept"
    if losses.damage:
        after = "a seal and all that followed" if kept.sealed else "all that followed"
        yield f"{after} dropped, for {losses.damage}"
    if losses.bytes:
        yield f"{_count(losses.bytes, 'byte')} of an unfinished line dropped"
    if merged:
        yield f"{_count(merged, 'record')} of the shim added from its sidecar files"
    if losses.shim_lines:
        yield f"{_count(losses.shim_lines, 'line')} of the shim left out (unfinished, or with secrets unknown here)"
    if kept.unended:
        has = "has" if kept.unended == 1 else "have"
        yield f"{kept.unended} of {_count(kept.exchanges, 'exchange')} {has} no end"


def rewritten(pieces: Iterable[bytes], kept: Kept, added: Iterable[Record]) -> Iterator[bytes]:
    """The bytes of the repaired file, from those of the tape that `kept` was gathered from."""
    encoder = TapeEncoder(kept.head, behind=(kept.records, kept.hash))
    for text in plain_text(pieces, kept.size):
        encoder.copy(text)
        yield encoder.flush()
    for record in added:
        encoder.add(record)
    trace = kept.trace
    yield encoder.seal(
        t=kept.t,
        trace=trace.hexdigest(),
        outcome=REPAIRED,
        lanes=trace.lanes(),
        messages=trace.messages(),
        uploads=trace.uploads(),
    )


def plain_text(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The first `size` bytes of text in a file that has them; what comes after is not looked at."""
    inflater = Inflater()
    for data in pieces:
        inflater.feed(data)
        while size and (text := inflater.read()) is not None:
            yield text[:size]
            size -= min(size, len(text))
        if not size:
            return


def _mark(record: Record) -> bytes:
    """What a record of a shim's is known again by: all but the time when it was taped; what has a number by that.

    Their texts may be redacted by other secrets now.
    """
    if isinstance(record, Lane):
        return b"lane " + record.id.encode("utf-8", "surrogatepass")
    if isinstance(record, Value):
        return f"value {record.n} {record.lane}".encode("utf-8", "surrogatepass")
    fields = {name: value for name, value in record.to_json().items() if name != "t"}
    return orjson.dumps({"k": record.kind} | fields, option=orjson.OPT_SORT_KEYS)


def _digest(request: Request) -> bytes:
    """What a request to a server on stdio is known again by."""
    assert isinstance(request.body, bytes)  # the decoder resolves references
    return blake3(request.url + b"\n" + request.body).digest()


def _host(url: bytes) -> str:
    return url.partition(b"://")[2].partition(b"/")[0].decode("latin-1")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
