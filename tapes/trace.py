"""The trace hash: one digest of everything a replay must reproduce, whatever the times and the interleaving.

For every identity, in the order of its occurrences: the answer's status, headers, body bytes and how it ended. Wall
times, chunk boundaries and the order of different requests are not part of it. Exchanges inside the run are not
either: their answers are computed live in a replay, and compared one by one. Requests are told apart by the version and
the rules in the tape's head.

A lane's digest is of the same parts, of one lane and in the order in which it asked: what the trace hash leaves open.

What passed on WebSockets has a digest of its own, or readers that know no WebSockets would find another trace than the
sealed one: for every identity that became one, in order, the messages of either direction and how it was closed. How
the two directions interleave is not part of it, nor are pings, pongs and the boundaries of frames.

So have the bodies of requests that were streamed, which are not in the request's record, and so not in its identity
here: what was sent, for every such identity, whatever the order.
"""

from collections import defaultdict
from collections.abc import Iterable

from blake3 import blake3

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import identify
from tapeproxy.tapes.reading import Reading, taped_reading
from tapeproxy.tapes.records import Chunks, End, Frame, Head, Record, Request, Response, Side

type Part = tuple[bytes, int, bytes]
"""What one exchange adds: the key of its identity, the index of its request's record, the digest of its answer."""


class TraceHasher:
    """Feed it a tape's records with their indexes, in order; keeps digests, not bodies."""

    def __init__(self) -> None:
        self._answers: dict[int, blake3] = {}  # of exchanges that have not ended: a hasher takes 2 KB
        self._digests: dict[int, bytes] = {}
        self._keys: list[tuple[bytes, int]] = []
        self._reading = Reading(1)
        self._lanes: dict[str, list[int]] = {}
        self._sent: dict[int, blake3 | bytes] = {}  # digests, of those that have ended
        self._talks: defaultdict[int, dict[Side, _Way]] = defaultdict(dict)

    def feed(self, index: int, record: Record) -> None:
        """Take the record of number `index`. Raises ValueError for a URL that is not absolute, or unknown rules."""
        match record:
            case Head():
                self._reading = taped_reading(record)
            case Request(inside=False):
                self._request(index, record)
            case Response() if record.of in self._answers:
                _feed_head(self._answers[record.of], record)
            case Chunks(to="client") if record.of in self._answers:
                for _, data in record.parts:
                    assert isinstance(data, bytes)  # the decoder resolves references
                    self._answers[record.of].update(data)
            case Chunks(to="server") if record.of in self._answers:
                sent = self._sent.setdefault(record.of, blake3())
                assert isinstance(sent, blake3)  # it has not ended
                for _, data in record.parts:
                    assert isinstance(data, bytes)  # the decoder resolves references
                    sent.update(data)
            case Frame() if record.of in self._answers:
                self._talks[record.of].setdefault(record.to, _Way()).take(record)
            case End() if record.of in self._answers:
                answer = self._answers.pop(record.of)
                _feed_end(answer, record)
                self._digests[record.of] = answer.digest()
                if isinstance(whole := self._sent.get(record.of), blake3):
                    self._sent[record.of] = whole.digest()
            case _:
                pass

    def hexdigest(self) -> str:
        """The trace hash, 64 hex digits."""
        return join_parts((key, index, self._answer(index)) for key, index in self._keys)

    def messages(self) -> str | None:
        """The digest of all that passed on WebSockets, 64 hex digits; None where nothing did."""
        if not self._talks:
            return None
        return join_parts((key, index, self._talk(index)) for key, index in self._keys if index in self._talks)

    def uploads(self) -> str | None:
        """The digest of what was streamed to servers, 64 hex digits; None where nothing was."""
        if not self._sent:
            return None
        digests = {of: sent if isinstance(sent, bytes) else sent.digest() for of, sent in self._sent.items()}
        return join_parts((key + digests[index], 0, digests[index]) for key, index in self._keys if index in digests)

    def _talk(self, index: int) -> bytes:
        ways = self._talks[index]
        return b"".join(ways[to].digest() if to in ways else bytes(32) for to in ("server", "client"))

    def lanes(self) -> dict[str, str]:
        """The digest of each lane that asked something, 64 hex digits. Requests of no lane are in none."""
        return {lane: self._lane(places) for lane, places in self._lanes.items()}

    def _lane(self, places: list[int]) -> str:
        digest = blake3()
        for place in places:
            key, index = self._keys[place]
            digest.update(key).update(self._answer(index))
        return digest.hexdigest()

    def _answer(self, index: int) -> bytes:
        return self._digests[index] if index in self._digests else self._answers[index].digest()

    def _request(self, index: int, record: Request) -> None:
        key = _key(record, self._reading)
        if record.lane is not None:
            self._lanes.setdefault(record.lane, []).append(len(self._keys))
        self._keys.append((key, index))
        self._answers[index] = blake3()


class _Way:
    """The digest of one direction of a WebSocket. What comes after a message says where it ends, and what it is."""

    def __init__(self) -> None:
        self._digest = blake3()
        self._size = 0

    def take(self, frame: Frame) -> None:
        if frame.type in ("ping", "pong"):
            return
        self._digest.update(frame.data)
        self._size += len(frame.data)
        if frame.open is None:
            code = "" if frame.code is None else f" {frame.code}"
            self._digest.update(f"\n{frame.type}{code} {self._size}\n".encode())
            self._size = 0

    def digest(self) -> bytes:
        return self._digest.digest()


def trace_hash(records: Iterable[tuple[int, Record]]) -> str:
    """The trace hash of numbered records. Raises ValueError for a URL that is not absolute."""
    hasher = TraceHasher()
    for index, record in records:
        hasher.feed(index, record)
    return hasher.hexdigest()


def part_of(exchange: Exchange, reading: Reading) -> Part:
    """What an exchange that is not inside the run adds, by its tape's own reading. Raises ValueError for its URL."""
    digest = blake3()
    if exchange.response is not None:
        _feed_head(digest, exchange.response)
    for chunk in exchange.chunks:
        digest.update(chunk.data)
    if exchange.end is not None:
        _feed_end(digest, exchange.end)
    return _key(exchange.request, reading), exchange.index, digest.digest()


def join_parts(parts: Iterable[Part]) -> str:
    """The trace hash of these parts, in whatever order they come: of all of a tape's, the one in its seal."""
    digest = blake3()
    for key, _, answer in sorted(parts):
        digest.update(key).update(answer)
    return digest.hexdigest()


def _key(request: Request, reading: Reading) -> bytes:
    assert isinstance(request.body, bytes)  # the decoder resolves references
    return identify(request.method, request.url, request.headers, request.body, reading=reading).key


def _feed_head(digest: blake3, response: Response) -> None:
    digest.update(b"%d\n" % response.status)
    for name, value in response.headers:
        digest.update(name.lower() + b": " + value + b"\n")
    digest.update(b"\n")


def _feed_end(digest: blake3, end: End) -> None:
    digest.update(b"\n" + end.how.encode())
