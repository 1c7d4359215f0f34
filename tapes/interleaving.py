"""How sibling flows took turns on the tape, and which answer of a replay has to wait so that they do again. Pure.

Who takes the next thing from a queue does so when its answer has come. Which that is depends on how long the answers
took, and in a replay none takes long. So an answer waits for what came before it on the tape: what siblings and their
parent had asked, the answers they had got, and what the one who got the last of those did next. Knows no time but the
tape's.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import IntEnum

from tapeproxy.tapes.answers import SWITCHED
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Done

_AT_ONCE = 25_000_000
"""ns between the ends of two answers that may have been read in the other order: who went on first tells that."""
_SOON = 50_000_000
"""ns after the end of an answer in which what somebody else did may have come before its own receiver went on."""
_MOST_VAIN = 4
"""Short waits for siblings of one parent that ended in vain, after which there are no more."""
_LOOK_BACK = 8
"""Requests of one flow that may be under way at a time, in threads of its own."""
_FLOW = re.compile(r"(.*)/([atwc])\d[\dqs.+-]*")
_NEVER = float("inf")

type _Key = tuple[str, str]
"""The parent's lane and the kind of its flows: tasks are siblings of tasks, threads of threads."""


class Wait(IntEnum):
    """How an answer waits. BRIEFLY: what it waits for came after it on the tape, and may depend on it."""

    NOT = 0
    BRIEFLY = 1
    LONG = 2


class _Flow:
    """One sibling: what it and the flows below it asked on the tape, and how often it has asked in the replay."""

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.taped: list[Exchange] = []
        self.asked = 0
        self.done_t: float = _NEVER  # ns; on old tapes somewhat late
        self.completed = False
        self.free = False  # nobody waits for it
        self.sleepy = False  # it slept before it completed

    def next_after(self, t: int) -> int:
        """The place of its first request after `t`."""
        return bisect_left(self.taped, t, key=lambda one: one.request.t)

    def move(self, t: int) -> float:
        """When it went on after an answer that ended at `t`."""
        place = self.next_after(t)
        return self.taped[place].request.t if place < len(self.taped) else self.done_t

    def owes(self, place: int) -> bool:
        """Whether the request at `place` has still to come, and waiting for it is of use.

        Nothing leaps while an answer is held: who sleeps before it asks, or waits for a timeout, would do so in full.
        """
        if self.free or self.completed or self.asked > place:
            return False
        due = self.taped[self.asked : place + 1]
        before = self.taped[max(self.asked - 1, 0) : place]
        return not any(one.request.sleeps for one in due) and not any(_left(one) for one in before)

    def lives(self) -> bool:
        """Whether it has still to complete, and waiting for that is of use."""
        return not self.completed and not self.free and not self.sleepy


class _Siblings:
    def __init__(self) -> None:
        self.flows: dict[str, _Flow] = {}
        self.ranked: list[tuple[Exchange, _Flow, int, int]] = []  # with the place in its flow, and when it ended
        self.rank: dict[int, int] = {}
        self.first = 0  # rank of the first that was not delivered
        self.vain = 0


class Interleaving:
    """How the flows of one tape took turns, and how those of one replay of it do."""

    def __init__(self, dones: Iterable[Done], exchanges: Iterable[Exchange]) -> None:
        self._siblings: dict[_Key, _Siblings] = {}
        self._delivered: set[int] = set()
        self._parents: dict[str, _Flow] = {}
        of: dict[_Key, list[tuple[Exchange, _Flow]]] = {}
        for one in sorted(map(_slim, exchanges), key=lambda one: one.request.t):
            if one.request.inside or not one.request.lane:
                continue
            self._parents.setdefault(one.request.lane, _Flow(one.request.lane)).taped.append(one)
            for key, lane in _flows(one.request.lane):
                flow = self._siblings.setdefault(key, _Siblings()).flows.setdefault(lane, _Flow(lane))
                flow.taped.append(one)
                of.setdefault(key, []).append((one, flow))
        for done in dones:
            for flow in self._flows_of(done.lane):
                if flow.lane == done.lane:
                    flow.done_t = done.t
                    flow.sleepy = done.sleeps > 0
        for key, found in of.items():
            self._siblings[key].ranked = _rank(found)
            self._siblings[key].rank = {one.number: rank for rank, (one, *_) in enumerate(self._siblings[key].ranked)}

    def asked(self, lane: str) -> None:
        """A lane of the replay makes a request."""
        if lane in self._parents:
            self._parents[lane].asked += 1
        for flow in self._flows_of(lane):
            flow.asked += 1

    def done(self, lane: str) -> None:
        """A task of the replay has completed."""
        for flow in self._flows_of(lane):
            flow.completed |= flow.lane == lane

    def delivered(self, exchange: Exchange) -> None:
        """The answer of this exchange is sent, or is not going to be."""
        self._delivered.add(exchange.number)

    def passed(self, number: int) -> None:
        """This exchange is not going to be asked for: another one was, and is over."""
        self._delivered.add(number)

    def precedes(self, earlier: Exchange, later: Exchange) -> bool:
        """Whether, of two answers of siblings, this one comes first."""
        for siblings, _ in self._places(later):
            if earlier.number in siblings.rank:
                return siblings.rank[earlier.number] < siblings.rank[later.number]
        return True

    def wait(self, exchange: Exchange) -> Wait:
        """Whether the answer of this exchange has to wait for what came before it on the tape."""
        found = Wait.NOT
        for siblings, parent in self._places(exchange):
            if any(True for _ in self._due(siblings, parent, exchange)):
                return Wait.LONG
            if siblings.vain < _MOST_VAIN and self._moves_soon(siblings, parent, exchange):
                found = Wait.BRIEFLY
        return found

    def give_up(self, exchange: Exchange) -> set[str]:
        """Wait no more for those that this answer waits for, nor for what they do later; returns the parents."""
        parents: set[str] = set()
        for siblings, parent in self._places(exchange):
            for flow in list(self._due(siblings, parent, exchange)):
                flow.free = True
                parents.add(parent)
            siblings.vain += 1
        return parents

    def _flows_of(self, lane: str) -> Iterator[_Flow]:
        for key, name in _flows(lane):
            if key in self._siblings and name in self._siblings[key].flows:
                yield self._siblings[key].flows[name]

    def _places(self, exchange: Exchange) -> Iterator[tuple[_Siblings, str]]:
        """The siblings that this answer's flow is one of, level by level, and their parent."""
        for key, _ in _flows(exchange.request.lane or ""):
            siblings = self._siblings.get(key)
            if siblings is not None and exchange.number in siblings.rank:
                yield siblings, key[0]

    def _due(self, siblings: _Siblings, parent: str, exchange: Exchange) -> Iterator[_Flow]:
        """The flows that have still to do what they had done before this answer came."""
        rank = siblings.rank[exchange.number]
        _, mine, _, end = siblings.ranked[rank]
        begin = _begin(exchange, end)
        others = [flow for flow in siblings.flows.values() if flow is not mine]
        for flow in (*others, *self._parent(parent)):
            due = flow.next_after(begin)
            if (due and flow.owes(due - 1)) or (flow.done_t < begin and flow.lives() and flow.asked >= due):
                yield flow
        while siblings.first < rank and siblings.ranked[siblings.first][0].number in self._delivered:
            siblings.first += 1
        for one, flow, place, _ in siblings.ranked[siblings.first : rank]:
            if flow is not mine and not flow.free and flow.asked > place and one.number not in self._delivered:
                yield flow

    def _parent(self, lane: str) -> Iterator[_Flow]:
        if lane in self._parents:
            yield self._parents[lane]

    def _moves_soon(self, siblings: _Siblings, parent: str, exchange: Exchange) -> bool:
        """Whether another flow that has its answer has still to go on, and did so, on the tape, soon after this answer
        came and before its receiver went on."""
        _, mine, _, ended = siblings.ranked[siblings.rank[exchange.number]]
        end = _end(exchange, ended)
        then = mine.move(end)
        others = [flow for flow in siblings.flows.values() if flow is not mine and self._is_awake(flow)]
        return any(_is_about_to(flow, end, then) for flow in (*others, *self._parent(parent)))

    def _is_awake(self, flow: _Flow) -> bool:
        """Whether the flow has asked, and has its answers."""
        had = flow.taped[: flow.asked]
        return bool(had) and all(one.number in self._delivered for one in had[-_LOOK_BACK:])


def _is_about_to(flow: _Flow, end: int, before: float) -> bool:
    """Whether the next thing that the flow does was done soon after `end` and before `before`."""
    if flow.asked >= len(flow.taped):
        return flow.done_t - end < _SOON and flow.done_t < before and flow.lives()
    one = flow.taped[flow.asked]
    return one.request.t - end < _SOON and one.request.t < before and flow.owes(flow.asked)


def _flows(lane: str) -> Iterator[tuple[_Key, str]]:
    """The flows that a lane is of, itself first: each with its siblings' key."""
    while lane:
        if found := _FLOW.fullmatch(lane):
            yield (found[1], found[2]), lane
        lane = lane.rpartition("/")[0]


def _slim(exchange: Exchange) -> Exchange:
    """What of it is of interest here: a big tape does not fit into memory.

    A WebSocket's end is no answer's, so it waits for nobody.
    """
    request = replace(exchange.request, body=b"", headers=())
    end = None if exchange.response is not None and exchange.response.status == SWITCHED else exchange.end
    return Exchange(exchange.number, exchange.index, request, exchange.response, end=end)


def _left(exchange: Exchange) -> bool:
    """Whether its client did not wait for the end of the answer."""
    return exchange.end is not None and exchange.end.how == "client-gone"


def _end(exchange: Exchange, default: int) -> int:
    return default if exchange.end is None else exchange.end.t


def _begin(exchange: Exchange, end: int) -> int:
    """From when on others may have acted on what there was of the answer: a stream is read as it comes."""
    response = exchange.response
    if response is None or not any(
        name.lower() == b"content-type" and b"stream" in value for name, value in response.headers
    ):
        return end
    return min(response.t, end)


def _rank(found: list[tuple[Exchange, _Flow]]) -> list[tuple[Exchange, _Flow, int, int]]:
    """Answers in the order in which their receivers had them: that of their ends, or, of those that came at once, of
    what the receivers did next. An answer put before others counts as ended when they did."""
    places: dict[str, int] = {}
    rows: list[tuple[Exchange, _Flow, int, int]] = []
    for one, flow in found:
        place = places[flow.lane] = places.get(flow.lane, -1) + 1
        if one.end is not None and not _left(one):
            rows.append((one, flow, place, one.end.t))
    rows.sort(key=lambda row: row[3])
    for at, row in enumerate(rows):
        one, flow, place, end = row
        move, to = flow.move(end), at
        while to and _was_read_later(rows[to - 1], flow, move, end):
            to -= 1
        if to < at:
            del rows[at]
            rows.insert(to, (one, flow, place, min(end, rows[to][3])))
    return rows


def _was_read_later(row: tuple[Exchange, _Flow, int, int], flow: _Flow, move: float, end: int) -> bool:
    other, others, _, _ = row
    t = _end(other, end)
    return others is not flow and end - t < _AT_ONCE and move < others.move(t)
