"""The trace hash: one digest of everything a replay must reproduce, whatever the times and the interleaving.

For every identity, in the order of its occurrences: the answer's status, headers, body bytes and how it ended. Wall
times, chunk boundaries and the order of different requests are not part of it. Exchanges inside the run are not
either: their answers are computed live in a replay, and compared one by one.
"""

from collections.abc import Iterable

from blake3 import blake3

from tapeproxy.tapes.identity import identify
from tapeproxy.tapes.records import Chunks, End, Record, Request, Response


class TraceHasher:
    """Feed it a tape's records with their indexes, in order; keeps digests, not bodies."""

    def __init__(self) -> None:
        self._answers: dict[int, blake3] = {}
        self._keys: list[tuple[bytes, int]] = []

    def feed(self, index: int, record: Record) -> None:
        """Take the record of number `index`. Raises ValueError for a URL that is not absolute."""
        match record:
            case Request(inside=False):
                self._request(index, record)
            case Response() if record.of in self._answers:
                digest = self._answers[record.of]
                digest.update(b"%d\n" % record.status)
                for name, value in record.headers:
                    digest.update(name.lower() + b": " + value + b"\n")
                digest.update(b"\n")
            case Chunks(to="client") if record.of in self._answers:
                for _, data in record.parts:
                    assert isinstance(data, bytes)  # the decoder resolves references
                    self._answers[record.of].update(data)
            case End() if record.of in self._answers:
                self._answers[record.of].update(b"\n" + record.how.encode())
            case _:
                pass

    def hexdigest(self) -> str:
        """The trace hash, 64 hex digits."""
        digest = blake3()
        for key, index in sorted(self._keys):
            digest.update(key).update(self._answers[index].digest())
        return digest.hexdigest()

    def _request(self, index: int, record: Request) -> None:
        assert isinstance(record.body, bytes)  # the decoder resolves references
        identity = identify(record.method, record.url, record.headers, record.body)
        self._keys.append((identity.key, index))
        self._answers[index] = blake3()


def trace_hash(records: Iterable[tuple[int, Record]]) -> str:
    """The trace hash of numbered records. Raises ValueError for a URL that is not absolute."""
    hasher = TraceHasher()
    for index, record in records:
        hasher.feed(index, record)
    return hasher.hexdigest()
