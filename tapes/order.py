"""The order in which sibling tasks completed: what the tape says, what a replay makes of it. Pure; knows no time.

Who waits for the first of several tasks goes on with the one that was first. Which that is depends on how long the
answers of each took, and in a replay none takes long. So an answer that would let a task complete waits until those
before it have completed, and until its parent has asked what it asked before: it may have gone on with them by then.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tapeproxy.tapes.exchanges import Exchange, outlines
from tapeproxy.tapes.records import Done


class Disorder(NamedTuple):
    """The tasks of `parent` completed in another order: `taped`, and `now`, are the lanes that differ."""

    parent: str
    taped: tuple[str, ...]
    now: tuple[str, ...]


class CompletionOrder:
    """The order of one tape, and of one replay of it, task by task of each parent."""

    def __init__(self, taped: Iterable[tuple[Done, int]], exchanges: Sequence[Exchange] = ()) -> None:
        """`taped`: in the order of the tape, each with the number of exchanges that were begun before it."""
        self._taped: dict[str, list[str]] = {}
        self._place: dict[str, tuple[str, int]] = {}
        self._now: dict[str, list[str]] = {}
        self._done: set[str] = set()
        self._free: set[str] = set()
        self._last: dict[str, int] = {}
        self._asked: Counter[str | None] = Counter()
        self._before: dict[str, int] = {}
        begun: Counter[str | None] = Counter()
        counted = 0
        for done, before in taped:
            begun.update(exchange.request.lane for exchange in outlines(exchanges[counted:before]))
            counted = before
            self._before.setdefault(done.lane, begun[done.parent])
            siblings = self._taped.setdefault(done.parent, [])
            self._place.setdefault(done.lane, (done.parent, len(siblings)))
            siblings.append(done.lane)
        ends: dict[str, int] = {}
        for exchange in outlines(exchanges):
            end = exchange.request.t if exchange.end is None else exchange.end.t
            for task in self._tasks(exchange.request.lane):
                if end >= ends.get(task, end):
                    ends[task], self._last[task] = end, exchange.number

    def asked(self, lane: str) -> None:
        """A lane of the replay makes a request."""
        self._asked[lane] += 1

    def done(self, lane: str, parent: str) -> None:
        """A task of the replay has completed."""
        self._now.setdefault(parent, []).append(lane)
        self._done.add(lane)

    def must_wait(self, exchange: Exchange) -> bool:
        """Whether the answer of this exchange, the last of its task, has to wait for what came before on the tape."""
        return any(True for _ in self._waiting(exchange))

    def give_up(self, exchange: Exchange) -> None:
        """Those before it do not complete: let it and its siblings go as they come."""
        self._free.update([self._place[task][0] for task in self._waiting(exchange)])

    def _waiting(self, exchange: Exchange) -> Iterator[str]:
        """The tasks that this answer is the last of, and that must not complete yet."""
        for task in self._tasks(exchange.request.lane):
            parent, place = self._place[task]
            if self._last.get(task) == exchange.number and parent not in self._free:
                due = self._taped[parent][:place]
                if self._asked[parent] < self._before[task] or not self._done.issuperset(due):
                    yield task

    def _tasks(self, lane: str | None) -> Iterator[str]:
        """The tasks whose completion is on the tape that this lane is of: itself, and those whose threads it is of."""
        while lane:
            if lane in self._place:
                yield lane
            lane = lane.rpartition("/")[0]

    @property
    def given_up(self) -> list[str]:
        """The parents whose tasks could not be kept in order."""
        return sorted(self._free)

    def disorders(self) -> Iterator[Disorder]:
        """Where the replay's tasks completed in another order, those left out that only one of the two has."""
        for parent, now in self._now.items():
            taped = self._taped.get(parent, [])
            both = set(taped) & set(now)
            was, became = ([lane for lane in lanes if lane in both] for lanes in (taped, now))
            moved = [place for place, lane in enumerate(was) if became[place : place + 1] != [lane]]
            if moved:
                first, end = moved[0], moved[-1] + 1
                yield Disorder(parent, tuple(was[first:end]), tuple(became[first:end]))
