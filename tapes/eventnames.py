"""Which exchange of a tape is meant by `12`, `m/t0#3` or `last`. Pure."""

import re
from difflib import get_close_matches
from typing import Final

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape, outlines

_PLACE: Final = re.compile(r"(?P<lane>[^\s#]+)#(?P<n>\d{1,9})")


def find_event(tape: Tape, text: str | int) -> int:
    """The number of an exchange, as `show` prints it. Raises UsageError that says which there are.

    A lane is meant by its id, or by the name that the agent gave it where no other lane has it.
    """
    size = len(tape.exchanges)
    if not size:
        raise UsageError("there is no exchange on the tape", where=str(text))
    if text == "last":
        return size
    if isinstance(text, int) or text.isdecimal():
        number = int(text)
        if not 1 <= number <= size:
            raise UsageError(f"there is no exchange {number} on the tape: it has 1 to {size}")
        return number
    match = _PLACE.fullmatch(text)
    if match is None:
        fix = "an exchange is named by its number in `tapeproxy show`, as LANE#N (from 0), or as `last`"
        raise UsageError(f"{text!r} names no exchange", fix=fix)
    return _of_lane(tape, match["lane"], int(match["n"]))


def find_lane(tape: Tape, name: str) -> str:
    """The id of a lane. Raises UsageError that says which there are."""
    ids = list(dict.fromkeys([*(lane.id for lane in tape.lanes), *_asking(tape)]))
    if name in ids:
        return name
    named = [lane.id for lane in tape.lanes if lane.name == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise UsageError(f"{len(named)} lanes are called {name!r}: {', '.join(named[:12])}", fix="name one by its id")
    names = [*ids, *(lane.name for lane in tape.lanes if lane.name)]
    near = get_close_matches(name, names, n=1)
    there = ", ".join(ids[:12]) + (f" and {len(ids) - 12} more" if len(ids) > 12 else "")
    fix = f"did you mean {near[0]}?" if near else f"there are {there}" if ids else "the tape has no lanes"
    raise UsageError(f"there is no lane {name!r} on the tape", fix=fix)


def _asking(tape: Tape) -> list[str]:
    return [one.request.lane for one in outlines(tape.exchanges) if one.request.lane is not None]


def _of_lane(tape: Tape, name: str, n: int) -> int:
    lane = find_lane(tape, name)
    numbers = {one.request.n: one.number for one in outlines(tape.exchanges) if one.request.lane == lane}
    if n in numbers:
        return numbers[n]
    made = f"it made {len(numbers)}, from 0 on" if numbers else "it made none"
    raise UsageError(f"lane {lane} made no request {n}: {made}")
