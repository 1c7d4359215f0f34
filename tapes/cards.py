"""A request that looks for its answer, and the cards of an index: what is needed to find a taped one. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

from blake3 import blake3

from tapeproxy.tapes.exchanges import Exchange, Shelved
from tapeproxy.tapes.identity import Identity, identify, place_key, read_target
from tapeproxy.tapes.largebodies import is_stand_in
from tapeproxy.tapes.reading import PLAIN, Reading
from tapeproxy.tapes.records import Headers

type Size = tuple[int, int]
"""The lengths of URL and body."""


class Ask(NamedTuple):
    """A request looking for its answer, redacted, and how it is to be read. `url` is absolute.

    `body` is as it was sent, or what stands for a large one.
    """

    method: bytes
    url: bytes
    headers: Headers
    body: bytes
    inside: bool = False
    lane: str | None = None
    reading: Reading = PLAIN

    def raw_key(self) -> bytes:
        """A digest of everything that identity depends on, as it came: equal ones have equal identities."""
        digest = blake3(b"\0".join((self.method, self.url, b"i" if self.inside else b"")))
        matters = self.reading.headers
        for name, value in self.headers:
            if name.lower() in matters:
                digest.update(b"\0" + value)
        return digest.update(b"\0\0").update(self.body).digest()

    def size(self) -> Size:
        """What two requests share that one client wrote from the same values, in whatever order."""
        return len(self.url), len(self.body)

    def place(self) -> bytes:
        """The digest of what is compared first: see `place_key`."""
        return place_key(self.method, self.url, inside=self.inside, reading=self.reading)

    def identity(self) -> Identity:
        """Raises ValueError when the URL is not absolute."""
        return identify(self.method, self.url, self.headers, self.body, inside=self.inside, reading=self.reading)

    def is_loose(self) -> bool:
        """Whether a rule makes requests the same, here, that were sent in other bytes."""
        if not self.reading.rules:
            return False
        target = read_target(self.url, inside=self.inside, reading=self.reading)
        return self.reading.rules.at(target.authority, target.path).loose


class Hit(NamedTuple):
    """The answer. The request's body may be a reference: whoever asked has it."""

    exchange: Exchange


class Listed(Shelved):
    """Exchanges that are in memory anyhow."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = exchanges

    def __len__(self) -> int:
        return len(self._exchanges)

    @overload
    def __getitem__(self, at: int) -> Exchange: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Exchange]: ...
    def __getitem__(self, at: int | slice) -> Exchange | Sequence[Exchange]:
        return self._exchanges[at]


class Card:
    """An exchange in the index: what is needed to find it, and its identity once someone needed that.

    The exchange itself, with its bodies, may lie on disk: it is read there for each use of `exchange` and `ask`.
    """

    __slots__ = ("_at", "_exchanges", "_key", "_reading", "_stand_in", "inside", "number", "size", "used")

    def __init__(self, exchanges: Shelved, at: int, number: int, ask: Ask) -> None:
        self._exchanges = exchanges
        self._at = at
        self._reading = ask.reading
        self._key: bytes | None = None
        self._stand_in = ask.body if is_stand_in(ask.body) else None  # which takes a look at all of the body
        self.number = number
        self.inside = ask.inside
        self.size = ask.size()
        self.used = False

    @property
    def exchange(self) -> Exchange:
        return self._exchanges[self._at]

    @property
    def ask(self) -> Ask:
        """Its request."""
        body = self._exchanges.compared_body(self._at) if self._stand_in is None else self._stand_in
        return ask_of(self._exchanges.answer(self._at), body, self._reading)

    @property
    def lane(self) -> str | None:
        """Whose request it is."""
        return self._exchanges.answer(self._at).request.lane

    @property
    def loose(self) -> bool:
        """See `Ask.is_loose`."""
        return bool(self._reading.rules) and self.ask.is_loose()

    @property
    def key(self) -> bytes:
        if self._key is None:
            self._key = self.ask.identity().key
        return self._key

    def is_of(self, key: bytes, may_be: Callable[[Ask], bool]) -> bool:
        """Whether it has this identity, which is only computed of a request that `may_be` the one."""
        if self._key is None:
            ask = self.ask
            if not may_be(ask):
                return False
            self._key = ask.identity().key
        return self._key == key

    def give(self) -> Hit:
        """Give its answer out."""
        self.used = True
        return Hit(self._exchanges.answer(self._at))


class Cards(Sequence[Exchange]):
    """The exchanges of some cards, each read when it is looked at."""

    def __init__(self, cards: Sequence[Card]) -> None:
        self._cards = cards

    def __len__(self) -> int:
        return len(self._cards)

    @overload
    def __getitem__(self, at: int) -> Exchange: ...
    @overload
    def __getitem__(self, at: slice) -> "Cards": ...
    def __getitem__(self, at: int | slice) -> "Exchange | Cards":
        return Cards(self._cards[at]) if isinstance(at, slice) else self._cards[at].exchange


def ask_of(exchange: Exchange, body: bytes, reading: Reading) -> Ask:
    """The request of a taped exchange, of whose body `body` is compared."""
    request = exchange.request
    return Ask(request.method, request.url, request.headers, body, request.inside, request.lane, reading)
