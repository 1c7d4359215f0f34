"""Where two runs part: the events of two tapes side by side, and the first that differs. Pure; reads no file.

Events stand for each other by lane, identity and occurrence; those that were changed, by what they say and their place
in the lane (`eventpairs.py`). Lanes may have other ids in the other run (`lanepairs.py`). The order in which
lanes that run side by side happened to ask is no difference; the order within a lane is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tapeproxy.tapes.agentnames import all_names
from tapeproxy.tapes.branchreads import ReadDifference, reads_apart
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.comparisons import Change, Details, changes, details, gist
from tapeproxy.tapes.differences import Difference, json_differences
from tapeproxy.tapes.eventpairs import Pair, pair_events
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hintdiffs import HintDiff, hint_diffs
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.lanepairs import depth_first
from tapeproxy.tapes.sides import Side, both_readings, settle_keys
from tapeproxy.tapes.values import with_contents

type Kind = Literal["same", "moved", "changed", "missing", "extra"]
"""`missing`: only the first tape has it; `extra`: only the second; `moved`: the same, elsewhere or at another turn."""

_NAMED = 5
KINDS: tuple[Kind, ...] = ("same", "moved", "changed", "missing", "extra")


@dataclass(frozen=True, slots=True)
class LanePair:
    """Lanes that stand for each other, by their ids; None: the other run has no such lane. `name`: what to call it."""

    ours: str | None
    theirs: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Compared:
    """An exchange of the first tape and what stands for it on the second, by their numbers; one may be None.

    `request`: in one line, as the first tape has it where it does.
    """

    kind: Kind
    ours: int | None
    theirs: int | None
    lane: LanePair
    changes: tuple[Change, ...]
    request: str


@dataclass(frozen=True, slots=True)
class LaneDiff:
    """All events of a lane, in its order."""

    lane: LanePair
    events: tuple[Compared, ...]

    @property
    def same(self) -> bool:
        """Whether none of them differs."""
        return all(event.kind == "same" for event in self.events)

    def counts(self) -> dict[Kind, int]:
        return count(self.events)


@dataclass(frozen=True)
class TapeDiff:
    """Two tapes side by side. `branch`: the first event that differs, `reads` what was read otherwise before it.

    `hints`: what tools gave, values and messages that are not the same. `outcome`: how the runs ended otherwise; empty
    where they ended alike.
    """

    ours: Side
    theirs: Side
    lanes: tuple[LaneDiff, ...]
    branch: Compared | None
    hints: tuple[HintDiff, ...]
    outcome: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether nothing that counts differs."""
        return self.branch is None and not self.hints and not self.outcome

    def events(self) -> Iterator[Compared]:
        """All of them, lane by lane."""
        return (event for lane in self.lanes for event in lane.events)

    def diverged(self) -> list[Compared]:
        """Those that are not the same."""
        return [event for event in self.events() if event.kind != "same"]

    def counts(self) -> dict[Kind, int]:
        return count(self.events())

    def details(self, event: Compared) -> Details:
        """How an event that is on both tapes differs; read from them anew."""
        if event.ours is None or event.theirs is None:
            return Details()
        return details(self.ours, self.theirs, self.ours.event(event.ours), self.theirs.event(event.theirs))

    def gist(self, event: Compared) -> str:
        """What an event is about, in a few words; empty for what is no LLM call."""
        if event.ours is not None:
            return gist(self.ours.exchange(event.ours))
        return "" if event.theirs is None else gist(self.theirs.exchange(event.theirs))

    def reads(self) -> list[ReadDifference]:
        """What the runs had read otherwise before they parted; nothing where they did not."""
        if self.branch is None:
            return []
        one = None if self.branch.ours is None else self.ours.exchange(self.branch.ours)
        other = None if self.branch.theirs is None else self.theirs.exchange(self.branch.theirs)
        return list(reads_apart(self.ours.tape, self.theirs.tape, one, other, _stand_for(self.lanes)))


def diff_tapes(ours: Tape, theirs: Tape, *, strict: bool = False) -> TapeDiff:
    """Compare two tapes. `strict`: what providers make up anew, and all headers of an answer, count, too.

    Raises ValueError for a tape whose rules can't be read.
    """
    reading = both_readings(ours, theirs)
    one, other = (Side(tape, reading, strict=strict) for tape in (ours, theirs))
    settle_keys(one, other)
    lanes = tuple(_lane_diffs(one, other))
    hints = tuple(hint_diffs(ours, theirs, _stand_for(lanes)))
    return TapeDiff(one, other, lanes, _branch(one, other, lanes), hints, tuple(_outcome(ours, theirs)))


def only_lane(diff: TapeDiff, lane: str) -> TapeDiff:
    """The part of a diff about one lane, by its id in either run, or its name. Raises KeyError where there is none."""
    named = {id for side in (diff.ours, diff.theirs) for id, names in all_names(side.tape).items() if lane in names}
    wanted = {lane, *named}
    lanes = tuple(one for one in diff.lanes if {one.lane.ours, one.lane.theirs, one.lane.name} & wanted)
    if not lanes:
        raise KeyError(lane)
    ids = {id for one in lanes for id in (one.lane.ours, one.lane.theirs)}
    hints = tuple(one for one in diff.hints if any(place is not None and place[0] in ids for place in one.places))
    return TapeDiff(diff.ours, diff.theirs, lanes, _branch(diff.ours, diff.theirs, lanes), hints, ())


def _stand_for(lanes: Iterable[LaneDiff]) -> dict[str, str]:
    pairs = ((one.lane.ours, one.lane.theirs) for one in lanes)
    return {ours: theirs for ours, theirs in pairs if ours is not None and theirs is not None}


def relation(ours: Tape, theirs: Tape) -> str:
    """What one tape is to the other, in words; empty where it is nothing."""
    for child, parent, words in ((theirs, ours, ("B", "A")), (ours, theirs, ("A", "B"))):
        told = child.head.parent
        # An interrupted tape has no seal; its last line is told, too.
        marks = {parent.last, None if parent.seal is None else parent.seal.trace} - {"", None}
        if told is not None and marks & {told.get("trace"), told.get("last")}:
            if (child.head.branch or {}).get("update") is True:
                return f"{words[0]} is an update of {words[1]}"
            return f"{words[0]} is a fork of {words[1]}" + _forked_at(child)
    told_both = ours.head.parent, theirs.head.parent
    return "both are forks of one tape" if told_both[0] is not None and told_both[0] == told_both[1] else ""


def _forked_at(child: Tape) -> str:
    events = (child.head.branch or {}).get("events")
    if not isinstance(events, list) or not events:
        return ""
    return f" at exchange {', '.join(str(number) for number in events[:_NAMED])}{', …' if len(events) > _NAMED else ''}"


def count(events: Iterable[Compared]) -> dict[Kind, int]:
    """How many events there are of each kind."""
    counts = Counter(event.kind for event in events)
    return {kind: counts[kind] for kind in KINDS}


def _branch(one: Side, other: Side, lanes: Iterable[LaneDiff]) -> Compared | None:
    """The first event that differs; of those that nothing orders, that of the first lane."""
    apart = [event for lane in lanes for event in lane.events if event.kind != "same"]
    if not apart:
        return None
    orders = [Causality.of(side.tape) for side in (one, other)]
    return min(apart, key=lambda event: _rank(event, orders))


def _rank(event: Compared, orders: Sequence[Causality]) -> tuple[int, str, int]:
    places = [
        (order.rank(number), number)
        for order, number in zip(orders, (event.ours, event.theirs), strict=True)
        if number is not None
    ]
    rank, number = min(places)
    return rank, event.lane.ours or event.lane.theirs or "", number


def _lane_diffs(one: Side, other: Side) -> Iterator[LaneDiff]:
    found = pair_events(one, other)
    names = [{id: ", ".join(called) for id, called in all_names(side.tape).items()} for side in (one, other)]
    for a, b, pairs in sorted(found, key=lambda lane: (depth_first(lane[0] or lane[1] or ""), lane[0] is None)):
        name = names[0].get(a or "") or names[1].get(b or "") or a or b or ""
        lane = LanePair(a, b, name)
        if pairs:
            yield LaneDiff(lane, tuple(_compared(one, other, lane, pair) for pair in pairs))


def _compared(one: Side, other: Side, lane: LanePair, pair: Pair) -> Compared:
    a, b, how = pair
    number = (None if a is None else a.number), (None if b is None else b.number)
    if a is None or b is None:
        kind: Kind = "extra" if a is None else "missing"
    else:
        how = (*changes(one, other, a, b), *how)
        kind = "same" if not how else "moved" if set(how) <= {"lane", "order"} else "changed"
    first = a or b
    return Compared(kind, *number, lane, how, first.line if first is not None else "")


def _outcome(ours: Tape, theirs: Tape) -> Iterator[Difference]:
    was, now = (_ended(tape) for tape in (ours, theirs))
    if was != now:
        yield Difference("exit", was, now)
    one, other = (_concluded(tape) for tape in (ours, theirs))
    if one is not None and other is not None:
        for found in json_differences(one, other):
            yield replace(found, where=found.where.replace("body ", "final state ", 1).replace("$[0]", "$", 1), rule="")
    elif (one is None) != (other is None):
        yield Difference("final state", *("(none)" if side is None else "(told)" for side in (one, other)))


def _concluded(tape: Tape) -> Any:
    """What the run said that it concluded, as JSON: see docs/FORMAT.md, `final`. None where it said nothing."""
    told = [value for _, value in with_contents(tape.values) if value.what == "final" and value.content is not None]
    return [read_json(value.content or b"")[0] for value in told[-1:]] or None


def _ended(tape: Tape) -> str | None:
    if tape.exit is None:
        return None
    return f"killed by {tape.exit.signal}" if tape.exit.signal is not None else f"code {tape.exit.code}"
