"""Bodies that refer to earlier bodies; knows how to resolve them within limits.

The body of a request record is its `body`; of a chunks record, its parts joined. A head's `must` names the forms of
reference that a tape uses, so that a reader of any other tape need not keep what it has read; its `window` says how
little is enough.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence

from tapeproxy.tapes.records import Body, Chunks, Like, Record, Request

FORMS = frozenset({"like", "ref"})
"""The forms of reference, as a head's `must` names them."""
MAX_DEPTH = 64
"""References on references: a writer starts over with a whole body before this."""
MAX_EXPANDED = 8 << 30
"""Bytes of all bodies built from references: readers refuse more, so a writer makes no more."""
MAX_EXPANSION = 4096
"""Those bytes against the file's, past the first `FREE_EXPANSION`. A conversation of 800 turns has 300; to come near
the bound it takes a context of 4 MB that is sent a thousand times, with next to nothing new in it."""
FREE_EXPANSION = 1 << 30
MAX_BODY = 256 << 20
"""Bytes of the bodies of one record: those that are written out have a line to fit on, too."""
_WHOLE = 32 << 20
"""In a window of so many bytes bodies are kept as they are, which is the fastest."""
_PIECES = 2 * MAX_DEPTH + 2
"""More than a chain of references has."""
_LEAST = 1 << 10
"""What a short body counts in a window: so many short ones fill it, too."""


def forms_of(record: Record) -> set[str]:
    """The forms of reference that a record's bodies use."""
    # This runs for every record written: class patterns would take three times as long.
    if isinstance(record, Chunks):
        return {_form(body) for _, body in record.parts if isinstance(body, Like)}
    if isinstance(record, Request) and isinstance(record.body, Like):
        return {_form(record.body)}
    return set()


def _form(body: Like) -> str:
    return "ref" if body.whole else "like"


class Window:
    """Which request bodies may still be referred to: the last ones, that together are no longer than `size` bytes."""

    def __init__(self, size: int) -> None:
        self._room = size
        self._kept: deque[tuple[int, int]] = deque()

    def take(self, index: int, length: int) -> list[int]:
        """A request body of `length` bytes comes; returns the records whose bodies go, perhaps it itself."""
        length = max(length, _LEAST)
        self._kept.append((index, length))
        self._room -= length
        gone: list[int] = []
        while self._room < 0:
            old, freed = self._kept.popleft()
            self._room += freed
            gone.append(old)
        return gone


def allowance(compressed: int) -> int:
    """Bytes that all bodies built from references may have, where so many compressed bytes come before."""
    return min(MAX_EXPANDED, max(FREE_EXPANSION, MAX_EXPANSION * compressed))


type _Pieces = tuple[bytes | memoryview, ...]
"""A body, of which some may be another's, too."""


class BodyStore:
    """The bodies seen so far, by record index.

    `limit`: bytes that references may expand to, in all; it may be raised. `record`: those of one record. `forms`:
    those the head announced; without any, nothing is kept. `window`: the head's; without one all is kept. In a window
    as a recorder has it, bodies are kept whole; else of one by reference only what is new.
    """

    def __init__(
        self, limit: int, forms: Collection[str] = FORMS, window: int | None = None, *, record: int = MAX_BODY
    ) -> None:
        self.limit = limit
        self._most = record
        self._forms = FORMS.intersection(forms)
        self._window = None if window is None else Window(window)
        self._whole = window is not None and window <= _WHOLE
        self._expanded = self._of_record = self._rejoined = 0
        self._parts: dict[int, _Pieces] = {}
        self._depth: dict[int, int] = {}

    def keep(self, index: int, bodies: Sequence[Body], *, request: bool = True) -> tuple[bytes, ...]:
        """Resolve the bodies of record `index` and remember them. Raises ValueError saying what is wrong.

        `request`: it is a request, not chunks; in a window only those are remembered.
        """
        depth = self._of_record = 0
        out: list[bytes] = []
        kept: list[bytes | memoryview] = []
        for body in bodies:
            if isinstance(body, Like):
                depth = max(depth, self._depth.get(body.of, 0) + 1)
                pieces = self._resolve(body, depth)
                body = _joined(pieces)
                kept += (body,) if self._whole else pieces
            else:
                kept.append(body)
            out.append(body)
        if self._forms and (request or self._window is None):
            self._parts[index] = tuple(kept)
            if depth:
                self._depth[index] = depth
            self._forget(index, sum(map(len, out)))
        return tuple(out)

    def _forget(self, index: int, size: int) -> None:
        if self._window is not None:
            for gone in self._window.take(index, size):
                del self._parts[gone]
                self._depth.pop(gone, None)

    def _resolve(self, body: Like, depth: int) -> _Pieces:
        if _form(body) not in self._forms:
            raise ValueError(f"its form is {_form(body)!r}, which the head's must does not announce")
        if body.of not in self._parts:
            what = "an earlier record with a body" if self._window is None else "a request in the head's window"
            raise ValueError(f"it refers to record {body.of}, which is not {what}")
        if depth > MAX_DEPTH:
            raise ValueError(f"it refers through more than {MAX_DEPTH} records")
        base = self._base(body.of)
        length = sum(map(len, base))
        size = body.size(length)
        self._of_record += size
        if self._of_record > self._most:
            raise ValueError(f"the references of one record expand to more than {self._most} bytes")
        self._grow(size)
        if body.whole:
            return base
        return (*_cut(base, 0, body.head), body.mid, *_cut(base, length - body.tail, length))

    def _base(self, index: int) -> _Pieces:
        """The body that is referred to, in few pieces."""
        parts = self._parts[index]
        if len(parts) == 1 or (index in self._depth and len(parts) <= _PIECES):
            return parts
        # Many parts of a record of chunks: joined once.
        self._grow(size := sum(map(len, parts)))
        if index in self._depth:
            self._rejoined += size
            if self._rejoined > self._most:
                raise ValueError(f"more than {self._most} bytes are joined from references to be referred to")
        self._parts[index] = (b"".join(parts),)
        return self._parts[index]

    def _grow(self, size: int) -> None:
        self._expanded += size
        if self._expanded > self.limit:
            raise ValueError(f"the references expand to more than {self.limit} bytes: refused as a decompression bomb")


def _joined(pieces: _Pieces) -> bytes:
    first = pieces[0] if len(pieces) == 1 else None
    return first if isinstance(first, bytes) else b"".join(pieces)


def _cut(pieces: _Pieces, start: int, end: int) -> Iterator[bytes | memoryview]:
    """The bytes from `start` to `end`, none of them copied."""
    for piece in pieces:
        size = len(piece)
        first, last = max(start, 0), min(end, size)
        if first < last:
            yield piece if last - first == size else memoryview(piece)[first:last]
        start, end = start - size, end - size
