"""Which taped answer does this request get? Pure: an index of a tape's exchanges that gives each out once.

The n-th request with an identity gets the n-th answer with that identity, in the order of requests on the tape; when
they are used up, or there never was one, that is a miss. Nothing is given out twice and nothing is guessed. Where the
shim says which lane a request is from, each lane has its own answers, and those that came without a lane; a request
without a lane, or of a lane that the tape does not know, may have any.

Most requests of a replay are, byte for byte, the taped ones, so those are found by a digest of the raw request; the
canonical identity, which parses JSON, is computed only when that fails or could take an answer out of turn. Out of turn
is before an earlier one of the same identity that was sent in other bytes, as clients do that write keys in no fixed
order, and so in as many bytes. (Of the same identity and another length is another client, and each gets the answer to
its own bytes. Without that rule, agents that run side by side would have their whole conversations parsed. Where a
user's rule ignores or rewrites something the length says nothing, and all of that place are parsed.)
"""

from collections import defaultdict, deque
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from tapeproxy.tapes.cards import Ask as Ask
from tapeproxy.tapes.cards import Card as Card
from tapeproxy.tapes.cards import Cards as Cards
from tapeproxy.tapes.cards import Hit as Hit
from tapeproxy.tapes.cards import Listed, Size, ask_of
from tapeproxy.tapes.exchanges import Exchange, Shelved
from tapeproxy.tapes.identity import Identity, origin_of
from tapeproxy.tapes.reading import PLAIN, Reading

_AFTER_SCHEME = len(b"https://")
_AT_ONCE = 128
"""Identities that are computed at one look-up without more ado."""


class Miss(NamedTuple):
    """No answer. `used`: how many of this identity the tape had, all given out already (0: it never had one).

    `elsewhere`: another lane that has such an answer left.
    """

    ask: Ask
    used: int
    elsewhere: str | None = None


class _Place:
    """The exchanges of one method, host and path, in tape order.

    Identities are computed a few hundred at each look-up, so that the first miss of a long tape is no slower than later
    ones; until all are there, those that cannot be the asked one are left out by their texts.
    """

    __slots__ = ("_by_key", "_by_size", "_known", "_last", "cards")

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self._by_size: defaultdict[Size, deque[Card]] = defaultdict(deque)
        self._by_key: dict[bytes, list[Card]] | None = None
        self._known = 0
        self._last: tuple[bytes, list[Card]] = (b"", [])

    def add(self, card: Card) -> None:
        self.cards.append(card)
        self._by_size[card.size].append(card)
        self._by_key = None

    def next_of_size(self, size: Size) -> Card | None:
        return next((card for card in self._by_size.get(size, ()) if not card.used), None)

    def in_turn(self, card: Card) -> Card:
        """The first unused card of the same identity and size: another one when `card` would come out of turn.

        By a rule, what was sent in more bytes may be the same too.
        """
        if card.loose:
            return next(other for other in self.of_identity(card.key) if not other.used)
        cards = self._by_size[card.size]
        while cards[0].used:
            cards.popleft()
        for other in cards:
            if other is card or (not other.used and other.key == card.key):
                return other
        raise AssertionError("the card is in its place")

    def same(self, asked: Identity, reading: Reading) -> list[Card]:
        """All cards of an identity, used or not."""
        if self._by_key is not None or len(self.cards) - self._known <= _AT_ONCE or not reading.keeps_texts:
            return self.of_identity(asked.key)
        if self._last[0] != asked.key:
            self._last = (asked.key, self._sifted(asked))
        return self._last[1]

    def _sifted(self, asked: Identity) -> list[Card]:
        # Imported late: see `read_body`.
        from tapeproxy.tapes.sifting import SAMPLE, may_say, telling_runs

        self._known += _AT_ONCE
        rest = self.cards[self._known :]
        runs = telling_runs(asked.body, [card.ask.body for card in rest[:: max(len(rest) // SAMPLE, 1)]])
        found = [card for card in self.cards[: self._known] if card.key == asked.key]
        found += [card for card in rest if card.is_of(asked.key, lambda ask: may_say(ask.body, ask.headers, runs))]
        return found

    def of_identity(self, key: bytes) -> list[Card]:
        if self._by_key is None:
            self._by_key = {}
            for card in self.cards:
                self._by_key.setdefault(card.key, []).append(card)
        return self._by_key.get(key, [])


class _Shelf:
    """The exchanges of one lane, or of none."""

    __slots__ = ("_places", "_raw")

    def __init__(self) -> None:
        self._raw: defaultdict[bytes, deque[Card]] = defaultdict(deque)
        self._places: defaultdict[bytes, _Place] = defaultdict(_Place)

    def add(self, card: Card, ask: Ask) -> None:
        self._raw[ask.raw_key()].append(card)
        self._places[ask.place()].add(card)

    def exact(self, raw_key: bytes, place: bytes) -> Card | None:
        """The next card whose request is the same byte for byte."""
        cards = self._raw.get(raw_key)
        while cards:
            if not cards[0].used:
                return self._places[place].in_turn(cards[0])
            cards.popleft()
        return None

    def begins_with(self, card: Card, raw_key: bytes) -> bool:
        """Whether this is the first unused card whose request is the same byte for byte."""
        return next((other for other in self._raw.get(raw_key, ()) if not other.used), None) is card

    def next_of_size(self, place: bytes, size: Size) -> Card | None:
        """The first unused card of a size in a place, whatever its identity is."""
        return self._places[place].next_of_size(size) if place in self._places else None

    def same(self, ask: Ask, asked: Identity) -> list[Card]:
        """All cards of an identity, used or not."""
        place = ask.place()
        return self._places[place].same(asked, ask.reading) if place in self._places else []

    def at(self, place: bytes) -> list[Card]:
        """All cards of a place."""
        return self._places[place].cards if place in self._places else []


class Index:
    """The exchanges of one tape, each to be given out once. `by_lane` False: whoever asks may have any.

    `reading` is how both sides are understood: whoever asks gives the same. An exchange that an interrupted tape has
    neither answer nor end of is left out: what came of it is not known.
    `until`: how many of the exchanges it begins with, where more are to come.
    Raises ValueError, with the number of the exchange, for a taped URL that is not absolute.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        *,
        by_lane: bool = True,
        reading: Reading = PLAIN,
        until: int | None = None,
    ) -> None:
        self._shelves: dict[str | None, _Shelf] = {None: _Shelf()}
        self._cards: list[Card] = []
        self._exchanges = exchanges if isinstance(exchanges, Shelved) else Listed(exchanges)
        self._by_lane = by_lane
        self._reading = reading
        self._known = 0
        self._versions: dict[bytes, bool] = {}  # by the beginning of the URL, whether HTTP/2 was spoken
        self.extend(len(exchanges) if until is None else until)

    def extend(self, until: int) -> None:
        """Know the exchanges before the one at `until`, too. Raises ValueError as the making of the index does."""
        for at in range(self._known, until):
            exchange = self._exchanges[at]
            if exchange.response is None and exchange.end is None:
                continue
            ask = ask_of(exchange, exchange.compared_body, self._reading)
            card = Card(self._exchanges, at, exchange.number, ask)
            shelf = self._shelves.setdefault(ask.lane if self._by_lane else None, _Shelf())
            try:
                shelf.add(card, ask)
            except ValueError as error:
                raise ValueError(f"exchange {card.number}: {error}") from None
            self._cards.append(card)
            after = ask.url.find(b"/", _AFTER_SCHEME)
            place = ask.url if after < 0 else ask.url[:after]
            if not self._versions.get(place):
                self._versions[place] = exchange.request.alpn == "h2" or exchange.request.http.startswith("HTTP/2")
        self._known = max(self._known, until)

    def is_certain(self, ask: Ask) -> bool:
        """Whether `take_exact` gives an answer that it would also give if it knew more of the tape, whatever comes.

        So it is where the first unused exchange of this size, in this place, had the same request byte for byte.
        """
        if self._by_lane and ask.lane not in self._shelves:
            return False  # of this lane there is something to come, or its answers may be anybody's
        place, size = ask.place(), ask.size()
        shelves = self._for(ask)
        card = _first(card for shelf in shelves if (card := shelf.next_of_size(place, size)) is not None)
        return card is not None and not card.loose and any(shelf.begins_with(card, ask.raw_key()) for shelf in shelves)

    def take(self, ask: Ask) -> Hit | Miss:
        """The next answer for this request, or why there is none. Raises ValueError for a URL that isn't absolute."""
        found = self._find(ask)
        return found if isinstance(found, Miss) else found.give()

    def take_exact(self, ask: Ask) -> Hit | None:
        """What `take` gives, if there is a taped request that is the same byte for byte."""
        card = self._find_exact(ask)
        return None if card is None else card.give()

    def look(self, ask: Ask) -> Hit | Miss:
        """What `take` would give; it stays there to be given out."""
        found = self._find(ask)
        return found if isinstance(found, Miss) else Hit(found.exchange)

    def unused(self, without: Container[int] = ()) -> Cards:
        """The exchanges with the world that nothing has asked for, in tape order, those of some numbers left out."""
        left = [card for card in self._cards if not card.used and not card.inside]
        return Cards([card for card in left if card.number not in without] if without else left)

    def of_numbers(self, numbers: Container[int]) -> Cards:
        """The exchanges with the world that have these numbers and that nothing has asked for, in tape order."""
        return Cards([card for card in self._cards if card.number in numbers and not card.used and not card.inside])

    def spent(self, lane: str | None) -> int | None:
        """The number of the last exchange that a lane may have, where all of them were given out (0: it has none).

        None: some are left, or the tape has none at all.
        """
        cards = [card for card in self.cards() if not card.inside and (not self._by_lane or card.lane == lane)]
        if len(self.cards()) == 0 or not all(card.used for card in cards):
            return None
        return max((card.number for card in cards), default=0)

    def cards(self) -> Sequence[Card]:
        """Every taped request, in tape order."""
        return self._cards

    def use(self, numbers: Container[int]) -> None:
        """The answers of these exchanges were given out before."""
        for card in self._cards:
            card.used = card.used or card.number in numbers

    def used(self) -> Cards:
        """The exchanges with the world whose answers were given out, in tape order."""
        return Cards([card for card in self._cards if card.used and not card.inside])

    def speaks_http2(self, origin: bytes) -> bool | None:
        """Whether HTTP/2 was spoken with a server, as `origin_of` names it; None: nothing was, as far as is known."""
        found = [http2 for place, http2 in self._versions.items() if origin_of(place + b"/") == origin]
        return any(found) if found else None

    def at_place(self, ask: Ask) -> list[Card]:
        """The exchanges with this method, host and path that this request may have, used or not, in tape order."""
        place = ask.place()
        return sorted((card for shelf in self._for(ask) for card in shelf.at(place)), key=lambda card: card.number)

    def knows(self, ask: Ask) -> bool:
        """True when the tape holds this request at all, used or not."""
        asked = ask.identity()
        return any(shelf.same(ask, asked) for shelf in self._shelves.values())

    def _find(self, ask: Ask) -> Card | Miss:
        card = self._find_exact(ask)
        if card is not None:
            return card
        place = ask.place()
        shelves = self._for(ask)
        if not any(shelf.at(place) for shelf in self._shelves.values()):
            return Miss(ask, 0)
        asked = ask.identity()
        same = [card for shelf in shelves for card in shelf.same(ask, asked)]
        card = _first(card for card in same if not card.used)
        if card is not None:
            return card
        others = (card for shelf in self._shelves.values() for card in shelf.same(ask, asked) if not card.used)
        other = _first(others)
        return Miss(ask, len(same), other.ask.lane if other is not None else None)

    def _find_exact(self, ask: Ask) -> Card | None:
        raw_key, place = ask.raw_key(), ask.place()
        shelves = self._for(ask)
        if len(shelves) == 1:
            return shelves[0].exact(raw_key, place)
        found = [shelf.exact(raw_key, place) for shelf in shelves]
        return _first(card for card in found if card is not None)

    def _for(self, ask: Ask) -> list[_Shelf]:
        """Where answers for this request may be: its own lane first."""
        unlaned = self._shelves[None]
        if len(self._shelves) == 1:
            return [unlaned]
        own = self._shelves.get(ask.lane)
        return list(self._shelves.values()) if own is None or own is unlaned else [own, unlaned]


def _first(cards: Iterable[Card]) -> Card | None:
    return min(cards, key=lambda card: card.number, default=None)
