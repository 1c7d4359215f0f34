"""Exchanges: a request with its response, chunks and end, put together from the records of a tape.

Knows which record belongs to which; refuses records that refer to nothing. Nothing here is about files or matching.
Where the exchanges of a tape are kept while it is put together is the caller's choice: see `Shelf`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, Protocol

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.largebodies import LARGE, stand_in
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
    Headers,
    Lane,
    LaneEnd,
    Like,
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

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.data)


@dataclass(slots=True)
class Exchange:
    """One request and what came of it. `number` counts from 1 in the order of requests on the tape.

    `frames`: of one that became a WebSocket, what passed on it, as it stands on the tape (see `messages.py`).
    """

    number: int
    index: int
    request: Request
    response: Response | None = None
    chunks: list[Chunk] = field(default_factory=list)
    uploads: list[Chunk] = field(default_factory=list)
    end: End | None = None
    frames: list[Frame] = field(default_factory=list)

    @property
    def request_body(self) -> bytes:
        body = self.request.body
        assert isinstance(body, bytes)  # the decoder resolves references
        return body if not self.uploads else body + b"".join(chunk.data for chunk in self.uploads)

    @property
    def compared_body(self) -> bytes:
        """What a request is compared with: the request's body, or what stands for a large one (`largebodies`)."""
        assert isinstance(self.request.body, bytes)  # the decoder resolves references
        return compared(self.request.headers, self.request.body, self.uploads)

    def sent_pieces(self) -> Iterator[bytes]:
        """The request's body in pieces, which may each be read from elsewhere."""
        assert isinstance(self.request.body, bytes)  # the decoder resolves references
        yield self.request.body
        yield from (chunk.data for chunk in self.uploads)

    @property
    def response_body(self) -> bytes:
        """The body as it came, with its content coding."""
        return b"".join(chunk.data for chunk in self.chunks)


class Shelved(Sequence[Exchange]):
    """The exchanges of a tape too big for memory: each is read when it is looked at."""

    def answer(self, at: int) -> Exchange:
        """The exchange at `at`, perhaps with a reference for its request's body."""
        return self[at]

    def compared_body(self, at: int) -> bytes:
        """See `Exchange`."""
        return self[at].compared_body


def compared(headers: Headers, body: bytes, uploads: Sequence[Chunk]) -> bytes:
    """What is compared of a taped request's body: all that was sent, or what stands for it if that is large."""
    if len(body) + sum(chunk.size for chunk in uploads) > LARGE:
        return stand_in(headers, chain((body,), (chunk.data for chunk in uploads)))
    return body + b"".join([chunk.data for chunk in uploads]) if uploads else body


def outlines(exchanges: Sequence[Exchange]) -> Iterator[Exchange]:
    """The exchanges for someone who wants no request's body: those of a big tape come without, which is faster."""
    return map(exchanges.answer, range(len(exchanges))) if isinstance(exchanges, Shelved) else iter(exchanges)


class Shelf(Protocol):
    """Takes the exchanges of a tape in the order of their requests, and may put those that have ended elsewhere."""

    def begin(self, exchange: Exchange, like: Like | None) -> None:
        """An exchange begins; `like` is how its body stands on the tape, where it is a reference."""
        ...

    def keep(self, exchange: Exchange, chunk: Chunk) -> Chunk:
        """A chunk of this exchange has come: what is to stand for it."""
        ...

    def end(self, exchange: Exchange) -> None:
        """Nothing is added to this exchange any more."""
        ...

    def exchanges(self) -> Sequence[Exchange]:
        """All of them, in order, once the tape has been read."""
        ...


class _InMemory:
    """A shelf that keeps all it gets."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []

    def begin(self, exchange: Exchange, like: Like | None) -> None:
        self._exchanges.append(exchange)

    def keep(self, exchange: Exchange, chunk: Chunk) -> Chunk:
        return chunk

    def end(self, exchange: Exchange) -> None:
        pass

    def exchanges(self) -> Sequence[Exchange]:
        return self._exchanges


@dataclass(slots=True)
class Tape:
    """A whole tape. `seal` is None for an interrupted one; `values` come with their record numbers.

    `exchanges` may lie elsewhere than in memory, and are read there one by one. `ended`: when the last one did. `last`:
    the hash of the last line of its file; empty where nobody told.
    """

    head: Head
    exchanges: Sequence[Exchange] = field(default_factory=list[Exchange])
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
    ended: int = 0
    last: str = field(default="", compare=False)

    @property
    def duration(self) -> int:
        """Nanoseconds from start to the last record that says when it was."""
        return self.ended if self.exit is None else self.exit.duration


def assemble(entries: Iterable[Entry], source: str = "tape", shelf: Shelf | None = None) -> Tape:
    """Put a tape together. Raises TapeFormatError for a record that refers to no request, or comes twice."""
    tape: Tape | None = None
    shelf = _InMemory() if shelf is None else shelf
    for tape in assembling(entries, source, shelf):  # noqa: B007  # the last is whole
        pass
    if tape is None:
        raise TapeFormatError("the tape has no head", place=Place(source, 1))
    tape.exchanges = shelf.exchanges()
    return tape


def assembling(entries: Iterable[Entry], source: str, shelf: Shelf) -> Iterator[Tape]:
    """Yield one and the same tape after each of its records, with what has come so far; its exchanges are on the shelf.

    Raises what `assemble` does.
    """
    tape: Tape | None = None
    by_index: dict[int, Exchange] = {}
    number = 0
    for entry in in_order(entries, source):
        record = entry.record
        match record:
            case Head():
                tape = Tape(record)
            case Request():
                number += 1
                exchange = by_index[entry.index] = Exchange(number, entry.index, record)
                shelf.begin(exchange, entry.like)
            case End():
                exchange = by_index.pop(record.of)
                exchange.end = record
                shelf.end(exchange)
                assert tape is not None
                tape.ended = max(tape.ended, record.t)
            case Response():
                by_index[record.of].response = record
            case Chunks():
                exchange = by_index[record.of]
                side = exchange.chunks if record.to == "client" else exchange.uploads
                side.extend(shelf.keep(exchange, chunk) for chunk in _chunks(record))
            case Frame():
                by_index[record.of].frames.append(record)
            case _:
                assert tape is not None
                _place(tape, number, entry.index, record)
        assert tape is not None
        yield tape


def in_order(entries: Iterable[Entry], source: str = "tape") -> Iterator[Entry]:
    """Pass the records of a tape on, and hold on to none. Raises TapeFormatError as `assemble` does."""
    states: dict[int, _State] = {}
    headless = True
    for entry in entries:
        record = entry.record
        if headless and not isinstance(record, Head):
            raise TapeFormatError("the tape has no head", place=Place(source, 1))
        headless = False
        if isinstance(record, Request):
            states[entry.index] = "asked"
        elif isinstance(record, Response | Chunks | Frame | End):
            try:
                states[record.of] = _next(states.get(record.of), record)
            except ValueError as error:
                raise TapeFormatError(str(error), place=Place(source, entry.index + 1)) from None
        yield entry


type _State = Literal["asked", "answered", "ended"]


def _next(state: _State | None, record: Response | Chunks | Frame | End) -> _State:
    """What has come of an exchange after this record of it. Raises ValueError where the record may not come."""
    if state is None:
        raise ValueError(f"a {record.kind!r} record answers record {record.of}, which is not an earlier request")
    if state == "ended":
        raise ValueError(f"a {record.kind!r} record comes after the end of the exchange of record {record.of}")
    if isinstance(record, End):
        return "ended"
    if isinstance(record, Chunks):
        return state
    if isinstance(record, Frame):
        if state == "asked":
            raise ValueError(f"a 'ws' record comes before the response to record {record.of}")
        return state
    if state == "answered":
        raise ValueError(f"there is a second response to record {record.of}")
    return "answered"


def _place(tape: Tape, number: int, index: int, record: Record) -> None:
    match record:
        case Note():
            tape.notes.append(record)
        case Lane():
            tape.lanes.append(record)
        case Clock():
            tape.clocks.append(record)
        case LaneEnd():
            tape.lane_ends.append(record)
        case Done():
            tape.dones.append((record, number))
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


def _chunks(record: Chunks) -> Iterator[Chunk]:
    for dt, data in record.parts:
        assert isinstance(data, bytes)  # the decoder resolves references
        yield Chunk(None if dt is None else record.t + dt, data)
