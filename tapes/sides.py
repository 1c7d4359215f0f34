"""One side of a diff: the events of a tape as digests, so that two long runs are no burden. Pure; compares nothing.

Exchanges are read one by one, and again when one is looked at closely.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from tapeproxy.tapes.bodyforms import framed
from tapeproxy.tapes.calls import find_dialect
from tapeproxy.tapes.cards import Ask, ask_of
from tapeproxy.tapes.conversation import Dialect
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.identity import Identity
from tapeproxy.tapes.machine import Marks, facts_of, marks
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.reading import VERSION, Reading, taped_rules, taped_version
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.rules import Rules

NO_LANE: Final = ""
"""The lane of requests that came without one."""
_HEADERS = frozenset(
    {
        *(b"content-type", b"content-disposition", b"location", b"link", b"allow", b"www-authenticate"),
        *(b"retry-after", b"retry-after-ms", b"x-should-retry"),
    }
)
"""Of an answer's headers, those that clients act on; others tell of the server, and of the moment."""

_ID = re.compile(
    rb'"(?:id|(?:tool_)?call_id|tool_use_id|toolUseId|item_id|signature|thoughtSignature|previous_response_id)":"[^"]*"'
)


@dataclass(slots=True)
class Event:
    """An exchange in short. `number` and `lane` are the tape's.

    `line` is its request in a line. `raw` is the digest of what its identity depends on as it came, `key` that of its
    identity (or `raw`, where both sides have as many of that), `loose` that of its identity without ids that providers
    make up, `place` that of where it went, `answer` that of what came back.
    """

    number: int
    lane: str
    n: int | None
    line: str
    raw: bytes
    key: bytes
    loose: bytes
    place: bytes
    answer: bytes


class Side:
    """A tape, its events in the order of the tape, and how its requests are read.

    `strict`: all headers of an answer count. Raises ValueError for a tape whose rules can't be read.
    """

    def __init__(self, tape: Tape, reading: Reading, *, strict: bool = False) -> None:
        self.tape = tape
        self.reading = reading
        self.strict = strict
        self._lines: dict[str, str] = {}
        self._dialects: dict[bytes, Dialect | None] = {}
        self.events = [self._event(exchange) for exchange in tape.exchanges]
        self.laned = not self.events or any(event.lane != NO_LANE for event in self.events)

    def event(self, number: int) -> Event:
        """The event of this exchange."""
        return self.events[number - 1]

    def exchange(self, number: int) -> Exchange:
        """The exchange of this number, read anew."""
        return self.tape.exchanges[number - 1]

    def ask(self, number: int) -> Ask:
        """Its request."""
        exchange = self.exchange(number)
        return ask_of(exchange, exchange.request_body, self.reading)

    def identity(self, number: int) -> Identity | None:
        """The identity of its request; None where the tape holds no absolute URL."""
        try:
            return self.ask(number).identity()
        except ValueError:
            return None

    def dialect(self, event: Event) -> Dialect | None:
        """How a model is spoken to where this event went, if it is one: as the first event does that went there."""
        if event.place not in self._dialects:
            first = next(other for other in self.events if other.place == event.place)
            self._dialects[event.place] = find_dialect(self.exchange(first.number))
        return self._dialects[event.place]

    def by_lane(self) -> dict[str, list[Event]]:
        """The events of each lane, in the order in which it asked."""
        lanes: dict[str, list[Event]] = {}
        for event in self.events:
            lanes.setdefault(event.lane, []).append(event)
        for events in lanes.values():
            if all(event.n is not None for event in events):
                events.sort(key=lambda event: (event.n or 0, event.number))
        return lanes

    def digest(self) -> bytes:
        """A digest of what was asked and answered, lane by lane, whatever the interleaving."""
        digest = blake3()
        for lane, events in sorted(self.by_lane().items()):
            digest.update(framed(lane.encode(errors="surrogatepass")))
            for event in events:
                digest.update(event.key).update(event.answer)
        return digest.digest()

    def _event(self, exchange: Exchange) -> Event:
        ask = ask_of(exchange, exchange.request_body, self.reading)
        raw = ask.raw_key()
        lane = exchange.request.lane or NO_LANE
        answer = answer_digest(exchange, strict=self.strict)
        line = summary_line(ask)
        line = self._lines.setdefault(line, line)
        return Event(exchange.number, lane, exchange.request.n, line, raw, raw, raw, _place(ask), answer)


def settle_keys(ours: Side, theirs: Side) -> None:
    """Give the events of both sides their keys: an identity is only computed where one side has more of the same."""
    counts = [Counter(event.raw for event in side.events) for side in (ours, theirs)]
    odd = {raw for raw in counts[0].keys() | counts[1].keys() if counts[0][raw] != counts[1][raw]}
    known: dict[bytes, tuple[bytes, bytes]] = {}
    for side in (ours, theirs):
        for event in side.events:
            if event.raw in odd:
                if event.raw not in known:
                    identity = side.identity(event.number)
                    known[event.raw] = (event.raw, event.raw) if identity is None else (identity.key, _loose(identity))
                event.key, event.loose = known[event.raw]


def _loose(identity: Identity) -> bytes:
    """Without every field that may hold an id, and some that hold another thing: who differs in this, differs."""
    digest = blake3(identity.place)
    for name, value in (*identity.query, *identity.headers):
        digest.update(framed(name) + framed(value))
    digest.update(framed(identity.media.encode()) + _ID.sub(b"", identity.body.canonical))
    return digest.digest(16)


def both_readings(ours: Tape, theirs: Tape) -> Reading:
    """How the requests of two tapes are read to be compared: by the rules of both, and whatever machine they tell of.

    Raises ValueError for rules that can't be read.
    """
    rules = tuple(dict.fromkeys((*taped_rules(ours.head), *taped_rules(theirs.head))))
    facts = [facts_of(tape.head, tape.notes, whole=tape.seal is not None) for tape in (ours, theirs)]
    apart = {
        name: (*facts[0][name], *facts[1][name])
        for name in facts[0]
        if name in facts[1] and set(facts[0][name]) != set(facts[1][name])
    }
    found = marks(apart, {}) if apart else Marks()
    versions = {taped_version(ours.head), taped_version(theirs.head)}
    plain = not rules and not found and len(versions) == 1
    return Reading(versions.pop() if plain else VERSION, Rules(rules), found)


def answer_digest(exchange: Exchange, *, strict: bool) -> bytes:
    """A digest of an answer: status, headers that count, bytes, and how it ended; not when anything came."""
    digest = blake3()
    if exchange.response is not None:
        digest.update(b"%d\n" % exchange.response.status)
        for name, value in telling_headers(exchange.response.headers, strict=strict):
            digest.update(framed(name) + framed(value))
    digest.update(b"\n")
    for chunk in exchange.chunks:
        digest.update(chunk.data)
    # How the two directions of a WebSocket interleave does not count.
    for message in sorted(read_frames(exchange.frames), key=lambda message: message.to):
        if message.type not in ("ping", "pong"):
            digest.update(framed(f"{message.to} {message.type} {message.code}".encode()) + framed(message.data))
    digest.update(b"\n" + (exchange.end.how.encode() if exchange.end is not None else b""))
    return digest.digest(16)


def telling_headers(headers: Headers, *, strict: bool) -> Headers:
    """The headers of an answer that count, names in lower case."""
    pairs = ((name.lower(), value) for name, value in headers)
    return tuple(pair for pair in pairs if strict or pair[0] in _HEADERS)


def lane_keys(lanes: Mapping[str, Iterable[Event]]) -> dict[str, tuple[bytes, ...]]:
    """What each lane asked, as keys."""
    return {lane: tuple(event.key for event in events) for lane, events in lanes.items()}


def _place(ask: Ask) -> bytes:
    try:
        return ask.place()
    except ValueError:
        return blake3(framed(ask.method) + framed(ask.url)).digest()
