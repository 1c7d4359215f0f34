"""Bodies that refer to earlier bodies; knows how to resolve them within limits.

The body of a request record is its `body`; of a chunks record, its parts joined. A head's `must` names the forms of
reference that a tape uses, so that a reader of any other tape need not keep what it has read.
"""

from collections.abc import Collection, Sequence

from tapeproxy.tapes.records import Body, Chunks, Like, Record, Request

FORMS = frozenset({"like", "ref"})
"""The forms of reference, as a head's `must` names them."""
MAX_DEPTH = 64
"""References on references: a writer starts over with a whole body before this."""


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


class BodyStore:
    """The bodies seen so far, by record index.

    `limit`: bytes that references may expand to, in all. `forms`: those the head announced; without any, nothing is
    kept.
    """

    def __init__(self, limit: int, forms: Collection[str] = FORMS) -> None:
        self._limit = limit
        self._forms = FORMS.intersection(forms)
        self._expanded = 0
        self._parts: dict[int, tuple[bytes, ...]] = {}
        self._depth: dict[int, int] = {}

    def keep(self, index: int, bodies: Sequence[Body]) -> tuple[bytes, ...]:
        """Resolve the bodies of record `index` and remember them. Raises ValueError saying what is wrong."""
        depth = 0
        out: list[bytes] = []
        for body in bodies:
            if isinstance(body, Like):
                depth = max(depth, self._depth.get(body.of, 0) + 1)
                body = self._resolve(body, depth)
            out.append(body)
        whole = tuple(out)
        if self._forms:
            self._parts[index] = whole
            if depth:
                self._depth[index] = depth
        return whole

    def _resolve(self, body: Like, depth: int) -> bytes:
        if _form(body) not in self._forms:
            raise ValueError(f"its form is {_form(body)!r}, which the head's must does not announce")
        if body.of not in self._parts:
            raise ValueError(f"it refers to record {body.of}, which is not an earlier record with a body")
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
