"""Exchanges: a request with its response, chunks and end, put together from the records of a tape.

Knows which record belongs to which; refuses records that refer to nothing. Nothing here is about files or matching.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.records import (
    Chunks,
    Clock,
    Done,
    Edge,
    End,
    Env,
    Exit,
    Head,
    Lane,
    LaneEnd,
    Note,
    Record,
    Request,
    Response,
    Seal,
    Value,
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a body: `t` in nanoseconds after the tape's start (None: unknown), and its bytes."""

    t: int | None
    data: bytes


@dataclass(slots=True)
class Exchange:
    """One request and what came of it. `number` counts from 1 in the order of requests on the tape."""

    number: int
    index: int
    request: Request
    response: Response | None = None
    chunks: list[Chunk] = field(default_factory=list)
    uploads: list[Chunk] = field(default_factory=list)
    end: End | None = None

    @property
    def request_body(self) -> bytes:
        body = self.request.body
        assert isinstance(body, bytes)  # the decoder resolves references
        return body if not self.uploads else body + b"".join(chunk.data for chunk in self.uploads)

    @property
    def response_body(self) -> bytes:
        """The body as it came, with its content coding."""
        return b"".join(chunk.data for chunk in self.chunks)


@dataclass(slots=True)
class Tape:
    """A whole tape in memory. `seal` is None for an interrupted one; `values` come with their record numbers."""

    head: Head
    exchanges: list[Exchange] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    lane_ends: list[LaneEnd] = field(default_factory=list)
    dones: list[tuple[Done, int]] = field(default_factory=list)  # each with the number of exchanges begun before it
    envs: list[Env] = field(default_factory=list)
    values: list[tuple[int, Value]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    exit: Exit | None = None
    seal: Seal | None = None

    @property
    def duration(self) -> int:
        """Nanoseconds from start to the last record that says when it was."""
        if self.exit is not None:
            return self.exit.duration
        ends = [exchange.end.t for exchange in self.exchanges if exchange.end is not None]
        return max(ends, default=0)


def assemble(entries: Iterable[Entry], source: str = "tape") -> Tape:
    """Put a tape together. Raises TapeFormatError for a record that refers to no request, or comes twice."""
    tape: Tape | None = None
    by_index: dict[int, Exchange] = {}
    for entry in entries:
        if isinstance(entry.record, Head):
            tape = Tape(entry.record)
            continue
        if tape is None:
            raise TapeFormatError("the tape has no head", place=Place(source, 1))
        try:
            _place(tape, by_index, entry.index, entry.record)
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(source, entry.index + 1)) from None
    if tape is None:
        raise TapeFormatError("the tape has no head", place=Place(source, 1))
    return tape


def _place(tape: Tape, by_index: dict[int, Exchange], index: int, record: Record) -> None:
    match record:
        case Request():
            exchange = Exchange(len(tape.exchanges) + 1, index, record)
            by_index[index] = exchange
            tape.exchanges.append(exchange)
        case Response() | Chunks() | End():
            _attach(by_index, record)
        case Note():
            tape.notes.append(record)
        case Lane():
            tape.lanes.append(record)
        case Clock():
            tape.clocks.append(record)
        case LaneEnd():
            tape.lane_ends.append(record)
        case Done():
            tape.dones.append((record, len(tape.exchanges)))
        case Env():
            tape.envs.append(record)
        case Value():
            tape.values.append((index, record))
        case Edge():
            tape.edges.append(record)
        case Exit():
            tape.exit = record
        case Seal():
            tape.seal = record
        case _:
            pass  # unknown kinds are skipped here and kept by whoever rewrites a tape


def _attach(by_index: dict[int, Exchange], record: Response | Chunks | End) -> None:
    exchange = by_index.get(record.of)
    if exchange is None:
        raise ValueError(f"a {record.kind!r} record answers record {record.of}, which is not an earlier request")
    if exchange.end is not None:
        raise ValueError(f"a {record.kind!r} record comes after the end of the exchange of record {record.of}")
    if isinstance(record, End):
        exchange.end = record
    elif isinstance(record, Chunks):
        side = exchange.chunks if record.to == "client" else exchange.uploads
        side.extend(_chunks(record))
    elif exchange.response is not None:
        raise ValueError(f"there is a second response to record {record.of}")
    else:
        exchange.response = record


def _chunks(record: Chunks) -> Iterator[Chunk]:
    for dt, data in record.parts:
        assert isinstance(data, bytes)  # the decoder resolves references
        yield Chunk(None if dt is None else record.t + dt, data)
