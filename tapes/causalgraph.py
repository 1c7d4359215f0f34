"""What happened before what: the events of a run as a graph, and searches in it. Knows no tape.

Each lane is a row of events in its own order: it asks, it gets the answer, it meets another lane (and knows from then
on what that one knew). A `Place` is a point between two events of a lane; a meeting names the places that it learns
from. What a lane asks happens after all that came before in the lane, and after what it has learned.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

type Key = tuple[int, int, int]
"""Where in its lane an event stands: (requests before it, what it is, number)."""

_MET, _ASKED, _ANSWERED = 0, 1, 2
_LAST = 1 << 62


class Place(NamedTuple):
    """A point in a lane: after all events with a smaller key."""

    lane: str
    key: Key


def after(lane: str, asked: int, met: int = 0) -> Place:
    """After `asked` requests of the lane, with their answers, and `met` of its meetings."""
    return Place(lane, (asked, _MET, met))


def in_request(lane: str, n: int) -> Place:
    """When the lane had asked its request number `n`, and had no answer yet."""
    return Place(lane, (n, _ASKED, 1))


def end_of(lane: str) -> Place:
    """After all that the lane did."""
    return Place(lane, (_LAST, _MET, 0))


class Meeting(NamedTuple):
    """A lane learns what others knew: its meeting number `n`, made after `asked` requests. None: at its beginning."""

    lane: str
    asked: int | None
    n: int
    sources: tuple[Place, ...]


class Asking(NamedTuple):
    """Request `n` of a lane: exchange `number`. `learned`: what its answer brought, beside what the lane knew."""

    lane: str
    n: int
    number: int
    learned: tuple[Place, ...] = ()


type _Row = tuple[Key, tuple[Place, ...], int]
"""An event of a lane: where it stands, what it learns from, and the exchange that it is of (0: a meeting)."""


class CausalGraph:
    """The events of a run. Events are numbered lane by lane, lanes in the order of their ids."""

    def __init__(self, askings: Iterable[Asking], meetings: Iterable[Meeting]) -> None:
        rows: dict[str, list[_Row]] = {}
        for one in askings:
            row = rows.setdefault(one.lane, [])
            row += ((one.n, _ASKED, 0), (), one.number), ((one.n, _ANSWERED, 0), one.learned, one.number)
        for met in meetings:
            key = (-1, _MET, met.n) if met.asked is None else (met.asked, _MET, met.n)
            rows.setdefault(met.lane, []).append((key, met.sources, 0))
        self.lanes = sorted(rows)
        self._first: dict[str, int] = {}
        self._keys: dict[str, list[Key]] = {}
        self._lane_of: list[str] = []
        self._counts: list[int] = []
        """For each event, the requests and answers of its lane up to it."""
        self.requests: dict[int, int] = {}
        self.answers: dict[int, int] = {}
        """By exchange, the event."""
        self.numbers: dict[int, int] = {}
        """By the event of a request, the exchange."""
        sources = [found for lane in self.lanes for found in self._add(lane, rows[lane])]
        self._before: dict[int, list[int]] = {}
        for event, places in sources:
            found = {self._find(place) for place in places} - {None, event}
            if found:
                self._before[event] = sorted(one for one in found if one is not None)
        self.broken: list[tuple[str, str]] = []
        """Lanes of edges that were left out: they would have made something happen before itself."""
        self.sequence = self._sort()
        """All events; what happened before another stands before it."""
        self._after: dict[int, list[int]] = {}
        for event, befores in self._before.items():
            for before in befores:
                self._after.setdefault(before, []).append(event)
        self._taught = _by_lane(self._before, self._lane_of)
        self._teaching = _by_lane(self._after, self._lane_of)

    def lane(self, event: int) -> str:
        """Whose event it is."""
        return self._lane_of[event]

    def past(self, event: int) -> dict[str, int]:
        """Of each lane, the last event that is `event` or happened before it."""
        reached: dict[str, int] = {}
        todo = [event]
        while todo:
            one = todo.pop()
            lane = self._lane_of[one]
            known = reached.get(lane, self._first[lane] - 1)
            if one > known:
                reached[lane] = one
                events = self._taught.get(lane, [])
                for taught in events[bisect_right(events, known) : bisect_right(events, one)]:
                    todo += self._before[taught]
        return reached

    def future(self, event: int) -> dict[str, int]:
        """Of each lane, the first event that is `event` or happened after it."""
        reached: dict[str, int] = {}
        todo = [event]
        while todo:
            one = todo.pop()
            lane = self._lane_of[one]
            known = reached.get(lane, self._first[lane] + len(self._keys[lane]))
            if one < known:
                reached[lane] = one
                events = self._teaching.get(lane, [])
                for teaching in events[bisect_left(events, one) : bisect_left(events, known)]:
                    todo += self._after[teaching]
        return reached

    def position(self, event: int) -> tuple[int, int]:
        """How many requests and meetings the event's lane had made before it; an answer is after its request."""
        asked, kind, n = self._keys[self._lane_of[event]][event - self._first[self._lane_of[event]]]
        if kind == _ANSWERED:
            return asked + 1, 0
        return max(asked, 0), n if kind == _MET and asked >= 0 else 0

    def event_at(self, place: Place) -> int:
        """The event that stands at a place. Raises KeyError where there is none."""
        keys = self._keys[place.lane]
        at = bisect_left(keys, place.key)
        if keys[at : at + 1] != [place.key]:
            raise KeyError(place)
        return self._first[place.lane] + at

    def count(self, event: int) -> int:
        """The requests and answers of the event's lane, up to it."""
        return self._counts[event]

    def events_from(self, event: int) -> range:
        """The events of the lane from this one on."""
        lane = self._lane_of[event]
        return range(event, self._first[lane] + len(self._keys[lane]))

    def ranks(self) -> dict[int, int]:
        """For each request's event: the requests and answers that are it or happened before it."""
        # What a lane has learned is a number with a bit for each event; of its own it knows all up to where it is.
        learned: dict[str, tuple[int, int]] = {}
        told: dict[int, int] = {}
        left = {event: len(events) for event, events in self._after.items()}
        marks = self._marks()
        ranks: dict[int, int] = {}
        for event in self.sequence:
            lane = self._lane_of[event]
            bits, size = learned.get(lane, (0, 0))
            if event in self._before:
                own = _span(self._first[lane], event)
                for before in self._before[event]:
                    bits |= told[before]
                    left[before] -= 1
                    if not left[before]:
                        del told[before]
                bits &= ~own
                size = (bits & marks).bit_count()
                learned[lane] = bits, size
            if event in self.numbers:
                ranks[event] = size + self._counts[event]
            if event in self._after:
                told[event] = bits | _span(self._first[lane], event + 1)
        return ranks

    def _marks(self) -> int:
        """A bit for each event that is a request or an answer."""
        text = bytearray(len(self._lane_of) // 8 + 1)
        for events in (self.requests, self.answers):
            for event in events.values():
                text[event >> 3] |= 1 << (event & 7)
        return int.from_bytes(text, "little")

    def _add(self, lane: str, row: Sequence[_Row]) -> Iterator[tuple[int, tuple[Place, ...]]]:
        """Number a lane's events; yields those that learn from others."""
        self._first[lane] = len(self._lane_of)
        ordered = _in_order(row)
        count = 0
        for key, places, number in ordered:
            event = len(self._lane_of)
            self._lane_of.append(lane)
            if number and number not in self.requests:
                self.requests[number] = event
                self.numbers[event] = number
            elif number:
                self.answers[number] = event
            count += key[1] != _MET
            self._counts.append(count)
            if places:
                yield event, places
        self._keys[lane] = [key for key, _, _ in ordered]

    def _find(self, place: Place) -> int | None:
        """The last event before a place; None where there is none."""
        keys = self._keys.get(place.lane, [])
        at = bisect_left(keys, place.key)
        return self._first[place.lane] + at - 1 if at else None

    def _sort(self) -> list[int]:
        """All events, each after what happened before it. Edges that go round in a circle are left out."""
        waiting = {event: len(befores) for event, befores in self._before.items()}
        heirs: dict[int, list[int]] = {}
        for event, befores in self._before.items():
            for before in befores:
                heirs.setdefault(before, []).append(event)
        place = {lane: self._first[lane] for lane in self.lanes}
        ends = {lane: self._first[lane] + len(self._keys[lane]) for lane in self.lanes}
        out: list[int] = []
        ready = list(self.lanes)
        while len(out) < len(self._lane_of):
            while ready:
                lane = ready.pop()
                while place[lane] < ends[lane] and not waiting.get(place[lane]):
                    event = place[lane]
                    place[lane] += 1
                    out.append(event)
                    for heir in heirs.get(event, ()):
                        waiting[heir] -= 1
                        if not waiting[heir] and place[self._lane_of[heir]] == heir:
                            ready.append(self._lane_of[heir])
            if len(out) < len(self._lane_of):
                ready.append(self._break(place, ends, waiting))
        return out

    def _break(self, place: Mapping[str, int], ends: Mapping[str, int], waiting: dict[int, int]) -> str:
        """Nobody can go on: have the first lane that waits learn nothing of those who wait as well."""
        lane = next(lane for lane in self.lanes if place[lane] < ends[lane])
        event = place[lane]
        kept = [one for one in self._before[event] if one < place[self._lane_of[one]]]
        self.broken += [(self._lane_of[one], lane) for one in self._before[event] if one not in kept]
        self._before[event] = kept
        if not kept:
            del self._before[event]
        waiting[event] = 0
        return lane


def _in_order(row: Sequence[_Row]) -> list[_Row]:
    """A lane's events in their order. Requests of one number, which no honest tape has, come one after the other."""
    ordered = sorted(row, key=lambda one: (one[0][0], one[0][1] != _MET, 0 if one[0][1] else one[0][2], one[2]))
    asked, extra = -1, 0
    for at, (key, places, number) in enumerate(ordered):
        if key[1] == _ASKED:
            extra = extra + 2 if key[0] == asked else 0
            asked = key[0]
            if extra:
                ordered[at] = (asked, _ANSWERED, extra), places, number
        elif key[1] == _ANSWERED:
            ordered[at] = (asked, _ANSWERED, extra + 1), places, number
    return ordered


def _by_lane(events: Iterable[int], lane_of: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for event in sorted(events):
        found.setdefault(lane_of[event], []).append(event)
    return found


def _span(first: int, end: int) -> int:
    """A bit for each of the events from `first` on, up to `end`."""
    return (1 << end) - (1 << first)
