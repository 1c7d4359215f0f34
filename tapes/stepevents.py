"""The events of a tape that a search goes through one by one: exchanges with the world, and calls of tools. Pure.

A call stands for what it gave. One whose body asked the world is no event of its own: what it gave follows from the
answers, which are. Nor is one that was made within the body of another one, or in a lane whose name is chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapeproxy.tapes.causalgraph import CausalGraph, after
from tapeproxy.tapes.cuts import Cut, above, rows_of
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.forkplan import CausalOrder, ForkPlan, first
from tapeproxy.tapes.hints import Bodies, Call, calls
from tapeproxy.tapes.lanes import is_floating
from tapeproxy.tapes.meetings import askings_of, meetings_of
from tapeproxy.tapes.records import Value


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A call of a tool, made when its lane had made `asked` requests and had met others `met` times."""

    call: Call
    met: int

    @property
    def value(self) -> Value:
        """What it gave; its content may stand with another one that is the same."""
        return self.call.value

    @property
    def lane(self) -> str:
        """Who called."""
        return self.call.value.lane

    @property
    def place(self) -> tuple[int, int]:
        """Where in its lane it was made."""
        return self.call.asked, self.met


type StepEvent = int | CallEvent
"""An exchange, by its number, or a call."""


def step_events(tape: Tape, causality: CausalOrder) -> list[StepEvent]:
    """All events in a causal order: that of the exchanges, each call before the first exchange that knows of it."""
    inside = {one.number for one in outlines(tape.exchanges) if one.request.inside}
    exchanges = [number for number in causality.order() if number not in inside]
    found = _calls(tape)
    if not found:
        return list(exchanges)
    askings = askings_of(tape)
    graph = CausalGraph(askings, meetings_of(tape, askings))
    at = {number: place for place, number in enumerate(exchanges)}
    turn = {event: place for place, event in enumerate(graph.sequence)}

    def place(event: int) -> tuple[int, int]:
        return _first_after(graph, event, at), turn[event]

    rows = sorted(
        ((*place(graph.event_at(after(one.lane, *one.place))), one) for one in found), key=lambda row: row[:2]
    )
    out: list[StepEvent] = []
    done = 0
    for before, _, call in rows:
        out += exchanges[done:before]
        done = before
        out.append(call)
    return out + exchanges[done:]


def first_of(tape: Tape, causality: CausalOrder, events: Sequence[StepEvent], k: int) -> ForkPlan:
    """Give what the first `k` of these events gave, and have the rest made anew. Raises UsageError."""
    if not 0 <= k <= len(events):
        raise UsageError(f"the tape has {len(events)} events, not {k}")
    plan = first(tape, causality, sum(isinstance(event, int) for event in events[:k]))
    left = [event for event in events[k:] if isinstance(event, CallEvent)]
    if not left:
        return plan
    cut = dict(plan.cut)
    rows, ends = rows_of(tape), {end.lane: end.reads for end in tape.lane_ends}
    for one in sorted(left, key=lambda call: call.place, reverse=True):
        known = cut.get(one.lane)
        if known is None or known.requests >= one.call.asked:
            cut[one.lane] = Cut(one.call.asked, 0, one.met if k else 0)
    for lane in {upper for one in left for upper in above(one.lane)} - cut.keys():
        # It may have heard from the lane below it.
        of_lane = rows.get(lane, [])
        cut[lane] = Cut(of_lane[-1].place + 1 if of_lane else 0, ends.get(lane, 0))
    bodies, made = Bodies(tape), {one.call.lane for one in left}
    for lane in {*plan.lanes, *made} - cut.keys():
        if bodies.call_of(lane) in made:
            cut[lane] = Cut(0, 0, 0)
    served = {event.lane for event in events[:k] if isinstance(event, CallEvent)}
    return replace(plan, cut=cut, stays=frozenset(served - cut.keys()))


def _calls(tape: Tape) -> list[CallEvent]:
    bodies = Bodies(tape)
    asking = bodies.exchanges(tape)
    met = {(edge.lane, edge.on): edge.n for edge in tape.edges if edge.what == "call" and not edge.out}
    return [
        CallEvent(call, met[call.value.lane, call.lane])
        for call in calls(tape)
        if call.asked >= 0
        and call.lane not in asking
        and (call.value.lane, call.lane) in met
        and not is_floating(call.value.lane)
        and bodies.call_of(call.value.lane) is None
    ]


def _first_after(graph: CausalGraph, event: int, at: dict[int, int]) -> int:
    """The place of the first exchange that may know of an event of the graph; behind all where there is none."""
    found = len(at)
    for reached in graph.future(event).values():
        for one in graph.events_from(reached):
            if (place := at.get(graph.numbers.get(one, 0))) is not None:
                found = min(found, place)
                break
    return found
