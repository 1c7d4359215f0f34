"""What the agent calls its lanes, and who of them made a request: one lane may be several agents' in turn. Pure.

A hint that names an agent says how many requests the lane had made (`asked`); what was asked from there on is that
agent's, up to the next name.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import groupby

from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.records import Lane


def all_names(tape: Tape) -> dict[str, tuple[str, ...]]:
    """Of each lane that has any, its names in their order. One that was changed before anything was asked is none."""
    return {lane: tuple(dict.fromkeys(turns.values())) for lane, turns in _turns(tape).items()}


def names_of(tape: Tape) -> dict[str, str]:
    """What to call a lane, where no other one is called so: `planner, synthesizer` for one that was both."""
    return _unique({lane: ", ".join(names) for lane, names in all_names(tape).items()})


def askers_of(tape: Tape, *, unique: bool = True) -> dict[int, str]:
    """By an exchange's number, what the agent that asked is called. `unique`: where no other lane has that name."""
    turns = _turns(tape)
    of_lanes = Counter(name for names in all_names(tape).values() for name in names)
    found: dict[int, str] = {}
    for one in outlines(tape.exchanges):
        lane, n = one.request.lane, one.request.n
        if lane is not None and lane in turns:
            begun = [asked for asked in turns[lane] if n is None or asked <= n]
            name = turns[lane][max(begun) if begun else min(turns[lane])]
            if of_lanes[name] == 1 or not unique:
                found[one.number] = name
    return found


def _turns(tape: Tape) -> dict[str, dict[int, str]]:
    """Of each lane, its names by how many requests it had made when it got them; hints come before other names."""
    found: dict[str, dict[int, str]] = {}
    named = sorted((lane for lane in tape.lanes if lane.name), key=lambda lane: lane.id)
    for id, group in groupby(named, key=lambda lane: lane.id):
        lanes = list(group)
        hinted = [lane for lane in lanes if lane.asked is not None]
        found[id] = {_asked(lane): lane.name or "" for lane in hinted or lanes}
    return found


def _asked(lane: Lane) -> int:
    return lane.asked or 0


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    times = Counter(names.values())
    return {lane: name for lane, name in names.items() if times[name] == 1}
