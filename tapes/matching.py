"""Which taped answer does this request get? Pure: an index of a tape's exchanges that gives each out once.

The n-th request with an identity gets the n-th answer with that identity, in the order of requests on the tape; when
they are used up, or there never was one, that is a miss. Nothing is given out twice and nothing is guessed.

Most requests of a replay are, byte for byte, the taped ones, so those are found by a digest of the raw request; the
canonical identity, which parses JSON, is computed only when that fails or could take an answer out of turn. Out of turn
is before an earlier one of the same identity that was sent in other bytes, as clients do that write keys in no fixed
order, and so in as many bytes. (Of the same identity and another length is another client, and each gets the answer to
its own bytes. Without that rule, agents that run side by side would have their whole conversations parsed.)
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

from blake3 import blake3

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import Identity, Target, identify, parse_target, place_key
from tapeproxy.tapes.records import Headers

_MATTERS = frozenset({b"content-type", b"content-encoding"})

type Size = tuple[int, int]
"""The lengths of URL and body."""


class Ask(NamedTuple):
    """A request looking for its answer, redacted. `url` is absolute, `body` as sent."""

    method: bytes
    url: bytes
    headers: Headers
    body: bytes
    inside: bool = False

    def raw_key(self) -> bytes:
        """A digest of everything that identity depends on, as it came: equal ones have equal identities."""
        digest = blake3(b"\0".join((self.method, self.url, b"i" if self.inside else b"")))
        for name, value in self.headers:
            if name.lower() in _MATTERS:
                digest.update(b"\0" + value)
        return digest.update(b"\0\0").update(self.body).digest()

    def size(self) -> Size:
        """What two requests share that one client wrote from the same values, in whatever order."""
        return len(self.url), len(self.body)

    def place(self) -> bytes:
        """The digest of what is compared first: see `place_key`."""
        return place_key(self.method, self.url, inside=self.inside)

    def identity(self) -> Identity:
        """Raises ValueError when the URL is not absolute."""
        return identify(self.method, self.url, self.headers, self.body, inside=self.inside)


class Hit(NamedTuple):
    """The answer."""

    exchange: Exchange


class Miss(NamedTuple):
    """No answer. `used`: how many of this identity the tape had, all given out already (0: it never had one)."""

    ask: Ask
    used: int


class _Card:
    """An exchange in the index, with its identity once someone needed it."""

    __slots__ = ("_key", "ask", "exchange", "used")

    def __init__(self, exchange: Exchange) -> None:
        request = exchange.request
        self.exchange = exchange
        self.ask = Ask(request.method, request.url, request.headers, exchange.request_body, request.inside)
        self.used = False
        self._key: bytes | None = None

    @property
    def target(self) -> Target:
        return parse_target(self.ask.url)

    @property
    def key(self) -> bytes:
        if self._key is None:
            self._key = self.ask.identity().key
        return self._key

    def give(self) -> Hit:
        """Give its answer out."""
        self.used = True
        return Hit(self.exchange)


def _unused_first(cards: list[_Card]) -> list[_Card]:
    return sorted(cards, key=lambda card: card.used)


class _Place:
    """The exchanges of one method, host and path, in tape order."""

    __slots__ = ("_by_key", "_by_size", "cards")

    def __init__(self) -> None:
        self.cards: list[_Card] = []
        self._by_size: defaultdict[Size, deque[_Card]] = defaultdict(deque)
        self._by_key: dict[bytes, list[_Card]] | None = None

    def add(self, card: _Card) -> None:
        self.cards.append(card)
        self._by_size[card.ask.size()].append(card)

    def in_turn(self, card: _Card) -> _Card:
        """The first unused card of the same identity and size: another one when `card` would come out of turn."""
        cards = self._by_size[card.ask.size()]
        while cards[0].used:
            cards.popleft()
        for other in cards:
            if other is card or (not other.used and other.key == card.key):
                return other
        raise AssertionError("the card is in its place")

    def of_identity(self, key: bytes) -> list[_Card]:
        if self._by_key is None:
            self._by_key = {}
            for card in self.cards:
                self._by_key.setdefault(card.key, []).append(card)
        return self._by_key.get(key, [])


class Index:
    """The exchanges of one tape, each to be given out once.

    An exchange that an interrupted tape has neither answer nor end of is left out: what came of it is not known.
    Raises ValueError for a taped URL that is not absolute.
    """

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._raw: defaultdict[bytes, deque[_Card]] = defaultdict(deque)
        self._places: defaultdict[bytes, _Place] = defaultdict(_Place)
        self._cards = [_Card(e) for e in exchanges if e.response is not None or e.end is not None]
        for card in self._cards:
            self._raw[card.ask.raw_key()].append(card)
            self._places[card.ask.place()].add(card)

    def take(self, ask: Ask) -> Hit | Miss:
        """The next answer for this request, or why there is none. Raises ValueError for a URL that isn't absolute."""
        place = self._places.get(ask.place())
        if place is None:
            return Miss(ask, 0)
        if hit := self.take_exact(ask):
            return hit
        same = place.of_identity(ask.identity().key)
        card = next((other for other in same if not other.used), None)
        return Miss(ask, len(same)) if card is None else card.give()

    def take_exact(self, ask: Ask) -> Hit | None:
        """What `take` gives, if there is a taped request that is the same byte for byte."""
        cards = self._raw.get(ask.raw_key())
        while cards:
            if not cards[0].used:
                return self._places[ask.place()].in_turn(cards[0]).give()
            cards.popleft()
        return None

    def unused(self) -> list[Exchange]:
        """The exchanges that nothing has asked for, in tape order."""
        return [card.exchange for card in self._cards if not card.used]

    def nearby(self, ask: Ask, limit: int) -> list[tuple[Exchange, Ask, bool]]:
        """Up to `limit` taped requests that this one may have been meant to be, the likeliest places first.

        Each with its exchange and whether its answer was given out.
        """
        place = self._places.get(ask.place())
        same_place = place.cards if place is not None else []
        host = parse_target(ask.url).host
        same_host = (card for card in self._cards if card.target.host == host)
        cards = dict.fromkeys(islice(chain(_unused_first(same_place), same_host, self._cards), limit * 3))
        return [(card.exchange, card.ask, card.used) for card in islice(cards, limit)]

    def knows(self, ask: Ask) -> bool:
        """True when the tape holds this request at all, used or not."""
        place = self._places.get(ask.place())
        return place is not None and bool(place.of_identity(ask.identity().key))
