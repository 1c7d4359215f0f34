"""Bodies that refer to earlier bodies; knows how to resolve them within limits.

The body of a request record is its `body`; of a chunks record, its parts joined.
"""

from collections.abc import Sequence

from tapeproxy.tapes.records import Body, Like

MAX_DEPTH = 64
"""References on references: a writer starts over with a whole body before this."""


class BodyStore:
    """The bodies seen so far, by record index. `limit`: bytes that references may expand to, in all."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
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
        self._parts[index] = tuple(out)
        if depth:
            self._depth[index] = depth
        return self._parts[index]

    def _resolve(self, body: Like, depth: int) -> bytes:
        if body.of not in self._parts:
            raise ValueError(f"it refers to record {body.of}, which is not an earlier record with a body")
        if depth > MAX_DEPTH:
            raise ValueError(f"it refers through more than {MAX_DEPTH} records")
        parts = self._parts[body.of]
        whole = body.resolve(parts[0] if len(parts) == 1 else b"".join(parts))
        self._expanded += 0 if body.whole else len(whole)
        if self._expanded > self._limit:
            raise ValueError(f"the references expand to more than {self._limit} bytes")
        return whole
