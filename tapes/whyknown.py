"""What could be known when a request was made: the texts that had come into the run before it. Pure."""

from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.folding import Folded
from tapeproxy.tapes.records import Request
from tapeproxy.tapes.whyreads import Reads
from tapeproxy.tapes.whysources import Told, told_by_answer, told_by_head, told_by_values

_FEW = 8
"""Moments for which it is worth to leave out what none of them knew of."""


class Piece(NamedTuple):
    """A text, and the moment at which it came in: with exchange `number`, before the record `limit`."""

    text: Folded
    number: int
    limit: int


class Known:
    """The texts of a tape that words may come from; what was read of the tape is kept."""

    def __init__(self, tape: Tape, causality: Causality) -> None:
        self._tape = tape
        self._causality = causality
        self._reads = Reads(tape)
        self._answers: dict[int, list[Told]] = {}
        self._first_unknown: dict[tuple[str, int], int | None] = {}

    def piece(self, text: str, number: int, limit: int | None = None) -> Piece:
        """A text that came in with an exchange, before a record: that of its request, if nothing is said."""
        return Piece(Folded(text), number, self._indexes[number - 1] if limit is None else limit)

    def sources(self, pieces: Collection[Piece]) -> list[Told]:
        """The texts that one of the pieces may come from; perhaps some that none may (see `has`)."""
        moments = {piece.number for piece in pieces}
        latest, limit = max(moments), max(piece.limit for piece in pieces)
        out = [*self._head]
        for exchange in self._tape.exchanges[: latest - 1]:
            number = exchange.number
            if exchange.index >= limit:
                break
            if len(moments) <= _FEW and not any(self._causality.before(number, moment) for moment in moments):
                continue
            if number not in self._answers:
                self._answers[number] = [*told_by_answer(exchange)]
            out += self._answers[number]
        out += [value for value in self._values if value.index < limit]
        return [*out, *self._reads.told(piece.text.text for piece in pieces)]

    def has(self, told: Told, piece: Piece) -> bool:
        """Whether a text was known when a piece came in."""
        if told.number is not None:
            before = told.index < piece.limit and told.number < piece.number
            return before and self._causality.before(told.number, piece.number)
        if told.kind == "value":
            return told.index < piece.limit and self._reached(told.lane, told.index, piece.number)
        if told.kind == "clock":
            return self._was_read(told, piece.number)
        return True

    def _was_read(self, told: Told, number: int) -> bool:
        """Whether a clock was read before the lane's own next request, or its first one that was not known."""
        own = self._lanes[number - 1] == told.lane
        first = number if own else self._first_unknown_of(told.lane, number)
        reads = None if first is None else self._requests[first - 1].reads
        return told.at <= self._requests[number - 1].t if reads is None else told.n < reads

    def _reached(self, lane: str, index: int, number: int) -> bool:
        """Whether what a lane read can have been known: its next request but one's own may not be unknown."""
        first = self._first_unknown_of(lane, number)
        return first is None or index < self._indexes[first - 1]

    def _first_unknown_of(self, lane: str, number: int) -> int | None:
        """The first exchange of another lane that a request did not know of."""
        if self._lanes[number - 1] == lane:
            return None
        key = lane, number
        if key not in self._first_unknown:
            # Of a lane's requests in order, those that are known come first.
            asked = self._asked.get(lane, ())
            unknown = (other for other in asked if other != number and not self._causality.before(other, number))
            self._first_unknown[key] = next(unknown, None)
        return self._first_unknown[key]

    @cached_property
    def _head(self) -> list[Told]:
        return [*told_by_head(self._tape)]

    @cached_property
    def _values(self) -> list[Told]:
        return told_by_values(self._tape)

    @cached_property
    def _indexes(self) -> list[int]:
        return [exchange.index for exchange in outlines(self._tape.exchanges)]

    @cached_property
    def _lanes(self) -> list[str]:
        return [request.lane or "" for request in self._requests]

    @cached_property
    def _requests(self) -> list[Request]:
        return [exchange.request for exchange in outlines(self._tape.exchanges)]

    @cached_property
    def _asked(self) -> dict[str, list[int]]:
        """The requests of each lane."""
        out: dict[str, list[int]] = {}
        for number, lane in enumerate(self._lanes, 1):
            out.setdefault(lane, []).append(number)
        return out
