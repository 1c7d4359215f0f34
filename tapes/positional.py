"""Answers by position alone: the n-th request of a lane gets the lane's n-th answer, whatever its body asks. Pure.

Only for `minimize`, whose trials change answers and so what is asked after them. Anywhere else this would be a guess:
a replay has to compare. Method and host have to be those of the tape even so, or the agent has gone another way.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

from tapeproxy.tapes.cards import Ask, Card
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.matching import Index, Miss
from tapeproxy.tapes.reading import PLAIN, Reading


class PositionIndex(Index):
    """An index that looks at nothing but lane, method and host. Requests inside the run are told apart as ever.

    Raises ValueError as `Index` does.
    """

    def __init__(self, exchanges: Sequence[Exchange], *, reading: Reading = PLAIN) -> None:
        super().__init__(exchanges, reading=reading)
        self._lanes: defaultdict[str | None, deque[Card]] = defaultdict(deque)
        for card in self.cards():
            if not card.inside:
                self._lanes[card.ask.lane].append(card)

    def _find(self, ask: Ask) -> Card | Miss:
        if ask.inside:
            return super()._find(ask)
        return self._next(ask) or Miss(ask, 0)

    def _find_exact(self, ask: Ask) -> Card | None:
        # Whoever looks for the same bytes has not redacted them yet.
        return super()._find_exact(ask) if ask.inside else None

    def _next(self, ask: Ask) -> Card | None:
        cards = self._lanes.get(ask.lane)
        while cards and cards[0].used:
            cards.popleft()
        return cards[0] if cards and _who(cards[0].ask) == _who(ask) else None


def _who(ask: Ask) -> tuple[bytes, str]:
    return ask.method, parse_target(ask.url).authority
