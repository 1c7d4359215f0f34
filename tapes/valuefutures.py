"""What comes after a value that a tool gave: the exchanges and lanes that may know of it. Pure.

A value is a point in its lane, after the requests and meetings that the lane had made by then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tapeproxy.tapes.causalgraph import CausalGraph, Meeting, after
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.hints import CALLS, is_within
from tapeproxy.tapes.meetings import askings_of, meetings_of
from tapeproxy.tapes.records import Value
from tapeproxy.tapes.values import with_contents

_BEFORE_ALL = -1


@dataclass(frozen=True, slots=True)
class Changed:
    """A value that a fork gives instead of the tape's.

    `asked`: requests of its lane before it. `future`: the exchanges after it; `body`: those that its function made on
    the tape, which nobody makes in the fork. `reached`: how many requests and meetings each lane had made before it
    knew of the value. `t`: when it was given, in ns after the tape's start.
    """

    value: Value
    asked: int
    future: frozenset[int]
    body: frozenset[int]
    reached: Mapping[str, tuple[int, int]]
    t: int

    @property
    def lane(self) -> str:
        """Whose value it is."""
        return self.value.lane


def change_value(tape: Tape, lane: str, n: int, content: bytes) -> Changed:
    """Value `n` of a lane with another content, and what comes after it.

    Raises UsageError where the tape has no such value.
    """
    taped = next((one for _, one in tape.values if (one.lane, one.n) == (lane, n)), None)
    if taped is None or taped.what not in CALLS:
        raise _no_value(tape, lane, n, taped)
    asked, call = taped.data.get("asked"), str(taped.data.get("call", ""))
    asked = asked if isinstance(asked, int) else 0
    met = next((e.n for e in tape.edges if e.what == "call" and (e.lane, e.on) == (lane, call)), _BEFORE_ALL)
    askings = askings_of(tape)
    # A meeting with nobody marks the point, also in a lane that did nothing else.
    point = Meeting(lane, asked, met, ())
    graph = CausalGraph(askings, [*_without(meetings_of(tape, askings), point), point])
    event = graph.event_at(after(lane, asked, met))
    firsts = graph.future(event)
    found = {graph.numbers.get(one) for first in firsts.values() for one in graph.events_from(first)}
    body = {one.number for one in outlines(tape.exchanges) if call and is_within(one.request.lane, call)}
    ended = taped.data.get("ended")
    return Changed(
        replace(
            taped,
            content=content,
            error=None,
            length=None,
            digest=None,
            data={name: item for name, item in taped.data.items() if name not in ("end", "untaped")} | {"edited": True},
        ),
        asked,
        frozenset(one for one in found if one is not None) - body,
        frozenset(body),
        {one: graph.position(first) for one, first in firsts.items() if not (call and is_within(one, call))},
        ended if isinstance(ended, int) else taped.t,
    )


def with_changes(tape: Tape, changed: Mapping[tuple[str, int], Value]) -> Tape:
    """The tape as the shims of a fork are to have it: with these values, by lane and number, in place of its own."""
    if not changed:
        return tape
    return replace(tape, values=list(_changed(tape, changed)))


def _changed(tape: Tape, changed: Mapping[tuple[str, int], Value]) -> Iterator[tuple[int, Value]]:
    for index, value in with_contents(tape.values):
        new = changed.get((value.lane, value.n))
        if new is None and "edited" in value.data:  # in the fork that this tape is of
            new = replace(value, data={name: item for name, item in value.data.items() if name != "edited"})
        yield index, new or value


def _without(meetings: list[Meeting], point: Meeting) -> Iterator[Meeting]:
    """The meetings; the one that is the point itself goes on learning what it learned."""
    for met in meetings:
        if met[:3] == point[:3]:
            point = met
        else:
            yield met


def _no_value(tape: Tape, lane: str, n: int, found: Value | None) -> UsageError:
    if found is not None:
        what = f"value {n} of lane {lane} is no tool's: it is of the kind {found.what!r}"
    else:
        what = f"lane {lane} has no value {n} of a tool"
    there = [f"{one.lane}#{one.n} ({one.name})" for _, one in tape.values if one.what in CALLS]
    more = f" and {len(there) - 8} more" if len(there) > 8 else ""
    return UsageError(what, fix=f"there are {', '.join(there[:8])}{more}" if there else "the tape has none of tools")
