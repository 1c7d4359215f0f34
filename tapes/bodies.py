"""Bodies that refer to earlier bodies; knows how to resolve them within limits.

The body of a request record is its `body`; of a chunks record, its parts joined. A head's `must` names the forms of
reference that a tape uses, so that a reader of any other tape need not keep what it has read; its `window` says how
little is enough.
"""

from collections import deque
from collections.abc import Collection, Sequence

from tapeproxy.tapes.records import Body, Chunks, Like, Record, Request

FORMS = frozenset({"like", "ref"})
"""The forms of reference, as a head's `must` names them."""
MAX_DEPTH = 64
"""References on references: a writer starts over with a whole body before this."""
MAX_EXPANDED = 8 << 30
"""Bytes of all bodies built from references: readers refuse more, so a writer makes no more."""
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


class BodyStore:
    """The bodies seen so far, by record index.

    `limit`: bytes that references may expand to, in all. `forms`: those the head announced; without any, nothing is
    kept. `window`: the head's; without one all is kept.
    """

    def __init__(self, limit: int, forms: Collection[str] = FORMS, window: int | None = None) -> None:
        self._limit = limit
        self._forms = FORMS.intersection(forms)
        self._window = None if window is None else Window(window)
        self._expanded = 0
        self._parts: dict[int, tuple[bytes, ...]] = {}
        self._depth: dict[int, int] = {}

    def keep(self, index: int, bodies: Sequence[Body], *, request: bool = True) -> tuple[bytes, ...]:
        """Resolve the bodies of record `index` and remember them. Raises ValueError saying what is wrong.

        `request`: it is a request, not chunks; in a window only those are remembered.
        """
        depth = 0
        out: list[bytes] = []
        for body in bodies:
            if isinstance(body, Like):
                depth = max(depth, self._depth.get(body.of, 0) + 1)
                body = self._resolve(body, depth)
            out.append(body)
        whole = tuple(out)
        if self._forms and (request or self._window is None):
            self._parts[index] = whole
            if depth:
                self._depth[index] = depth
            self._forget(index, whole)
        return whole

    def _forget(self, index: int, whole: tuple[bytes, ...]) -> None:
        if self._window is not None:
            for gone in self._window.take(index, sum(map(len, whole))):
                del self._parts[gone]
                self._depth.pop(gone, None)

    def _resolve(self, body: Like, depth: int) -> bytes:
        if _form(body) not in self._forms:
            raise ValueError(f"its form is {_form(body)!r}, which the head's must does not announce")
        if body.of not in self._parts:
            what = "an earlier record with a body" if self._window is None else "a request in the head's window"
            raise ValueError(f"it refers to record {body.of}, which is not {what}")
        if depth > MAX_DEPTH:
            raise ValueError(f"it refers through more than {MAX_DEPTH} records")
        whole = body.resolve(self._join(body.of))
        if not body.whole:
            self._grow(len(whole))
        return whole

    def _join(self, index: int) -> bytes:
        parts = self._parts[index]
        if len(parts) == 1:
            return parts[0]
        joined = b"".join(parts)
        self._grow(len(joined))
        self._parts[index] = (joined,)
        return joined

    def _grow(self, size: int) -> None:
        self._expanded += size
        if self._expanded > self._limit:
            raise ValueError(f"the references expand to more than {self._limit} bytes")
