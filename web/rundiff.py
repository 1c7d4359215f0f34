"""Two runs in one picture: the documents of `overview` for both at once, and what differs. Pure.

Lanes that stand for each other are neighbours, A's above B's. The exchanges of B are numbered on from the last one of
A; what a person reads is their `label`, such as A3 or B3. So the page shows a diff as it shows a tape.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.hintdiffs import rows
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.tapediff import Compared, TapeDiff, relation
from tapeproxy.web.details import details
from tapeproxy.web.overview import labels, outline, ranks

DETAILED: Final = 500
"""Events that differ whose differences a file holds; of more, the page has both exchanges."""
SIDES: Final = "AB"


class RunDiff:
    """What the page shows of a diff. `names`: what the two tapes are called. May be asked by several threads."""

    def __init__(self, diff: TapeDiff, names: tuple[str, str]) -> None:
        self._diff = diff
        self._names = names
        self._tapes = (diff.ours.tape, diff.theirs.tape)
        self._first = len(diff.ours.tape.exchanges)
        """How many numbers are A's."""
        self._causalities: dict[int, Causality] = {}

    def outline(self) -> Json:
        """As `overview.outline`, with `label` in the rows, and `diff`."""
        both = [outline(tape, None, name) for tape, name in zip(self._tapes, self._names, strict=True)]
        lanes, places = self._lanes([one["lanes"] for one in both])
        rows = _rows(both, places, self._first)
        return {
            "tape": both[0]["tape"] | self._about(both),
            "lanes": lanes,
            "rows": rows,
            "edges": [
                [what, there[a], n, there[b], k]
                for there, one in zip(places, both, strict=True)
                for what, a, n, b, k in one["edges"]
            ],
            "marks": [
                [None if lane is None else there[lane], *rest]
                for there, one in zip(places, both, strict=True)
                for lane, *rest in one["marks"]
            ],
            "diff": self._what_differs(),
        }

    def ranks(self) -> Json:
        """As `overview.ranks`: each run by its own order."""
        found = [ranks(self._causality(side)) for side in (0, 1)]
        pairs = [
            (rank, number + side * self._first)
            for side, one in enumerate(found)
            for number, rank in zip(one["number"], one["rank"], strict=True)
        ]
        pairs.sort()
        return {"number": [number for _, number in pairs], "rank": [rank for rank, _ in pairs]}

    def labels(self) -> Json:
        """As `overview.labels`."""
        one, other = (labels(tape.exchanges) for tape in self._tapes)
        other["number"] = [number + self._first for number in other["number"]]
        return {name: one[name] + other[name] for name in one}

    def documents(self) -> Iterator[Json]:
        """The exchanges of A, then those of B."""
        return (self.exchange(number) for number in range(1, self._first + len(self._tapes[1].exchanges) + 1))

    def exchange(self, number: int) -> Json:
        """One of them. Raises KeyError for a number that none has."""
        side = int(number > self._first)
        at = number - side * self._first
        tape = self._tapes[side]
        if not 1 <= at <= len(tape.exchanges):
            raise KeyError(number)
        found = details(tape.exchanges[at - 1], self._causality(side))
        found["exchange"]["number"] = number
        for name in ("clock", "reached"):
            found[name] = {f"{SIDES[side]}:{lane}": count for lane, count in found[name].items()}
        return found

    def differences(self, at: int) -> Json:
        """How the event at this place of `diff.events` differs: `request` and `response`, place by place.

        Raises KeyError for a place where there is none.
        """
        events = list(self._diff.events())
        if not 0 <= at < len(events):
            raise KeyError(at)
        return self._differences(events[at])

    def all_differences(self) -> list[Json | None]:
        """Those of the events in order; None for what is the same, and past the first `DETAILED`."""
        found: list[Json | None] = []
        told = 0
        for event in self._diff.events():
            tell = event.kind == "changed" and told < DETAILED
            told += tell
            found.append(self._differences(event) if tell else None)
        return found

    def _differences(self, event: Compared) -> Json:
        told = self._diff.details(event)
        return {"request": list(map(_difference, told.request)), "response": list(map(_difference, told.response))}

    def _causality(self, side: int) -> Causality:
        if side not in self._causalities:
            self._causalities[side] = Causality.of(self._tapes[side])
        return self._causalities[side]

    def _about(self, both: list[Json]) -> Json:
        return {
            "name": " and ".join(self._names),
            "argv": [],
            "recording": False,
            "outcome": "compared",
            "parent": None,
            "scrubbed": False,
            "duration": max(one["tape"]["duration"] for one in both),
            "exchanges": sum(one["tape"]["exchanges"] for one in both),
        }

    def _lanes(self, both: list[list[Json]]) -> tuple[list[Json], tuple[dict[int, int], dict[int, int]]]:
        """Lanes of the picture, and of each run, where its lanes are there."""
        known = [{lane["id"]: at for at, lane in enumerate(side)} for side in both]
        pairs = [(one.lane.ours, one.lane.theirs) for one in self._diff.lanes]
        wanted = [(side, known[side][lane]) for pair in pairs for side, lane in enumerate(pair) if lane in known[side]]
        # Lanes that asked nothing, and those of exchanges that stand for one of another lane.
        wanted += [(side, at) for side in (0, 1) for at in range(len(both[side]))]
        lanes: list[Json] = []
        places: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for side, at in dict.fromkeys(wanted):
            places[side][at] = len(lanes)
            lanes.append(both[side][at] | {"id": f"{SIDES[side]}:{both[side][at]['id']}", "parent": None})
        return lanes, places

    def _what_differs(self) -> Json:
        diff = self._diff
        events = list(diff.events())
        return {
            "names": list(self._names),
            "first": self._first,
            "same": diff.same,
            "relation": relation(*self._tapes),
            "counts": dict(diff.counts()),
            "branch": None if diff.branch is None else events.index(diff.branch),
            "events": [
                [
                    event.kind,
                    event.ours,
                    None if event.theirs is None else event.theirs + self._first,
                    list(event.changes),
                ]
                for event in events
            ],
            "reads": [[one.kind, one.what, one.where, one.ours, one.theirs] for one in diff.reads()],
            "hints": list(map(_difference, rows(diff.hints))),
            "outcome": list(map(_difference, diff.outcome)),
        }


def _rows(both: list[Json], places: tuple[Mapping[int, int], Mapping[int, int]], first: int) -> Json:
    columns: dict[str, list[Any]] = {}
    hosts: dict[str, int] = {}
    for side, one in enumerate(both):
        rows = one["rows"]
        there = [hosts.setdefault(host, len(hosts)) for host in rows["hosts"]]
        for name, values in rows.items():
            if name != "hosts":
                columns.setdefault(name, []).extend(values)
        begun = len(columns["number"]) - len(rows["number"])
        columns.setdefault("label", []).extend(f"{SIDES[side]}{number}" for number in rows["number"])
        columns["number"][begun:] = [number + side * first for number in rows["number"]]
        columns["host"][begun:] = [there[at] for at in rows["host"]]
        columns["lane"][begun:] = [places[side][lane] for lane in rows["lane"]]
    return {"hosts": list(hosts)} | columns


def _difference(found: Difference) -> list[str | None]:
    return [found.where, found.taped, found.asked, found.words]
