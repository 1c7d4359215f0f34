"""The order in which sibling tasks completed: what the tape says, what a replay makes of it. Pure; knows no time.

Who waits for the first of several tasks goes on with the one that was first. Which that is depends on how long the
answers of each took, and in a replay none takes long: `tapes/interleaving.py` says which has to wait for which.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from tapeproxy.tapes.exchanges import Exchange, outlines
from tapeproxy.tapes.interleaving import Interleaving, Wait
from tapeproxy.tapes.records import Done


class Disorder(NamedTuple):
    """The tasks of `parent` completed in another order: `taped`, and `now`, are the lanes that differ."""

    parent: str
    taped: tuple[str, ...]
    now: tuple[str, ...]


class CompletionOrder:
    """The order of one tape, and of one replay of it, task by task of each parent."""

    def __init__(
        self,
        taped: Iterable[Done],
        exchanges: Sequence[Exchange] = (),
        anew: Iterable[Exchange] = (),
        absent: Callable[[str | None], bool] = lambda _lane: False,
    ) -> None:
        """`anew`: of a fork, requests that are waited for, and whose answers are not the tape's. `absent`: whether a
        lane is not going to run."""
        # A thread may have been stopped between the end of its work and the line that tells of it.
        dones = sorted((done for done in taped if not absent(done.lane)), key=lambda done: done.t)
        self._taped: dict[str, list[str]] = {}
        self._now: dict[str, list[tuple[int, str]]] = {}
        self._given_up: set[str] = set()
        there = (one for one in outlines(exchanges) if not absent(one.request.lane))
        self._turns = Interleaving(dones, chain(there, anew))
        self.progress = 0  # grows with each answer that was sent and each task that completed
        for done in dones:
            self._taped.setdefault(done.parent, []).append(done.lane)

    def asked(self, lane: str) -> None:
        """A lane of the replay makes a request."""
        self._turns.asked(lane)

    def done(self, lane: str, parent: str, at: int = 0) -> None:
        """A task of the replay has completed: `at` some time, in ns."""
        self._now.setdefault(parent, []).append((at, lane))
        self._turns.done(lane)
        self.progress += 1

    def delivered(self, exchange: Exchange) -> None:
        """The answer of this exchange is sent, or is not going to be."""
        self._turns.delivered(exchange)
        self.progress += 1

    def passed(self, number: int) -> None:
        """In the place of this exchange another one was asked for, and that is over: nobody waits for it."""
        self._turns.passed(number)
        self.progress += 1

    def wait(self, exchange: Exchange) -> Wait:
        """Whether the answer of this exchange has to wait for what came before it on the tape."""
        return self._turns.wait(exchange)

    def give_up(self, exchange: Exchange) -> None:
        """What came before it does not come: let it go, and those that it waits for."""
        self._given_up |= self._turns.give_up(exchange)

    @property
    def given_up(self) -> list[str]:
        """The parents whose tasks could not be kept in order."""
        return sorted(self._given_up)

    def disorders(self) -> Iterator[Disorder]:
        """Where the replay's tasks completed in another order, those left out that only one of the two has."""
        for parent, found in self._now.items():
            now = [lane for _, lane in sorted(found, key=lambda done: done[0])]
            taped = self._taped.get(parent, [])
            both = set(taped) & set(now)
            was, became = ([lane for lane in lanes if lane in both] for lanes in (taped, now))
            moved = [place for place, lane in enumerate(was) if became[place : place + 1] != [lane]]
            if moved:
                first, end = moved[0], moved[-1] + 1
                yield Disorder(parent, tuple(was[first:end]), tuple(became[first:end]))
