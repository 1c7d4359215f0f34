"""What happened before what on a tape: vector clocks, causal rank, the order that no timing can change.

Computed here and nowhere else. An exchange is known by its number on the tape. It *happened before* another one when
its answer came before the other was asked, as far as lanes and edges can tell; see docs/CAUSALITY.md. Nothing here
depends on how lanes interleaved on the tape, except where a tape without edges leaves no other way.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Self

from tapeproxy.tapes.agentnames import askers_of, names_of
from tapeproxy.tapes.causalgraph import Asking, CausalGraph, Meeting
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.lanes import NO_LANE
from tapeproxy.tapes.meetings import askings_of, meetings_of

_PASTS = 256


class Causality:
    """The causal order of a tape's exchanges.

    All that take a number raise KeyError for one that no exchange has.
    """

    def __init__(
        self,
        askings: Sequence[Asking],
        meetings: Sequence[Meeting],
        names: Mapping[str, str] | None = None,
        askers: Mapping[int, str] | None = None,
    ) -> None:
        self._graph = CausalGraph(askings, meetings)
        self._names = dict(names or {})
        self._askers = dict(askers or {})
        self._past = lru_cache(_PASTS)(self._graph.past)
        self._order: tuple[int, ...] | None = None
        self._ranks: dict[int, int] | None = None

    @classmethod
    def of(cls, tape: Tape, only: Collection[int] | None = None) -> Self:
        """That of a tape: by its edges where it has them, else by its lanes and times, else the order of the tape.

        `only`: as if it had no exchanges but these.
        """
        askings = [one for one in askings_of(tape) if only is None or one.number in only]
        return cls(askings, meetings_of(tape, askings), names_of(tape), askers_of(tape))

    @property
    def lanes(self) -> Sequence[str]:
        """The lanes that asked or met something, by their ids; `NO_LANE` for requests of nobody who has a name."""
        return self._graph.lanes

    @property
    def broken(self) -> Sequence[tuple[str, str]]:
        """Edges, as lane to lane, that were left out because they contradict others: of a tape that was tampered with,
        or of an agent that acted on the beginning of a stream."""
        return self._graph.broken

    def name(self, lane: str) -> str:
        """What to call a lane: what the agent calls it and no other one, with the id; else the id."""
        found = self._names.get(lane)
        return f"{found} ({lane})" if found else (lane or "no lane")

    def asker(self, number: int) -> str:
        """What to call the one who asked: the agent that its lane was then, with the lane's id; else the id."""
        lane, found = self.lane(number), self._askers.get(number)
        return f"{found} ({lane})" if found else self.name(lane)

    def lane(self, number: int) -> str:
        """The lane that asked; `NO_LANE` where nobody knows."""
        return self._graph.lane(self._graph.requests[number])

    def order(self) -> Sequence[int]:
        """All exchanges in causal order: by rank, then by lane, then by their number in the lane. So whatever happened
        before an exchange stands before it, and two runs that did the same have the same order."""
        if self._order is None:
            ranks = self._graph.ranks()
            numbers = self._graph.numbers
            self._order = tuple(numbers[event] for event in sorted(ranks, key=lambda event: (ranks[event], event)))
        return self._order

    def rank(self, number: int) -> int:
        """The sum of the clock: of two exchanges, what happened before the other has the smaller one."""
        if self._ranks is None:
            self._ranks = self._graph.ranks()
        return self._ranks[self._graph.requests[number]]

    def clock(self, number: int) -> Mapping[str, int]:
        """The vector clock of the request: of each lane, how many requests and answers came before it, itself
        included. Lanes of which it knows nothing are left out."""
        past = self._past(self._graph.requests[number])
        counts = {lane: self._graph.count(past[lane]) for lane in sorted(past)}
        return {lane: count for lane, count in counts.items() if count}

    def before(self, a: int, b: int) -> bool:
        """Whether the answer of `a` happened before `b` was asked."""
        answer = self._graph.answers[a]
        return self._past(self._graph.requests[b]).get(self._graph.lane(answer), -1) >= answer

    def concurrent(self, a: int, b: int) -> bool:
        """Whether neither happened before the other. Nothing is concurrent with itself."""
        return a != b and not self.before(a, b) and not self.before(b, a)

    def future(self, number: int) -> frozenset[int]:
        """The exchanges that the answer of this one happened before."""
        graph = self._graph
        reached = graph.future(graph.answers[number])
        found = (graph.numbers.get(event) for first in reached.values() for event in graph.events_from(first))
        return frozenset(one for one in found if one is not None)

    def reached(self, number: int) -> Mapping[str, tuple[int, int]]:
        """Of each lane that comes to know of this answer: how many requests and meetings it had made before it did.

        The meeting with which it does so is not counted. Of the lane that asked, that is after the answer.
        """
        graph = self._graph
        answer = graph.answers[number]
        return {lane: graph.position(event) for lane, event in graph.future(answer).items()}


__all__ = ["NO_LANE", "Causality"]
