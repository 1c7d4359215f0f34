"""Time in a fork: a lane's clock is the tape's up to its cut, then real; all of it is taped anew. Patches nothing.

The launcher says at which request and read each lane of the causal future leaves the tape. From there on the lane reads
as while recording. Before, and in lanes outside of the future, it reads as in a replay, and each read that gave more
than a tick is told, so that the child tape has the whole clock. A lane that is not on the tape goes by those above it.
"""

from __future__ import annotations

from . import channel, livetime, settings, tapedtime, timeline
from .lanes import LANE, Lane, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TICK = 100


class _Cut:
    """Where a lane leaves the tape: after so many requests, reads and meetings.

    `meetings` < 0: nobody knows how many. Then `reads` is where the clock was past the change, and that read may have
    been long after it.
    """

    __slots__ = ("meetings", "reads", "requests")

    def __init__(self, requests: int, reads: int, meetings: int) -> None:
        self.requests, self.reads, self.meetings = requests, reads, meetings


_NOWHERE = _Cut(1 << 62, 0, 0)

_get = LANE.get
_cuts = None  # type: dict[str, _Cut] | None
_jump = None  # type: dict[str, Any] | None  # what the clock jumps to, in place of the real time
_set = False  # this process's live clock stands where it shall


def read() -> int:
    """Read the current lane's clock: ns since the epoch."""
    lane = _get(None) or current()
    if lane.live:
        return livetime.read()
    number = lane.reads
    if number == lane.next_jump or lane.time is None:
        return _turn(lane, number)
    lane.reads = number + 1
    lane.time = value = lane.time + TICK
    return value


def read_fine() -> int:
    """Read like read(); a live lane's stopwatches are told small differences, too."""
    lane = _get(None) or current()
    return livetime.read_fine() if lane.live else read()


def seconds(_: object) -> float:
    """time.time()."""
    return read() / 1e9


def rest(lane: Any, seconds: Any) -> None:
    """The lane has slept, or is about to."""
    if is_live(lane):
        livetime.rest(lane, seconds)
        return
    first = not lane.sleeps
    tapedtime.rest(lane, seconds)
    if first:
        lane.awake += lane.ahead


def advance(lane: Any, ns: int) -> None:
    """The lane has slept for so long."""
    if not lane.live:
        tapedtime.advance(lane, ns)


def ask(lane: Any) -> int:
    """The lane makes a request: how many reads it has made."""
    cut = _cut(lane)
    if not lane.live and lane.requests >= cut.requests:
        _go_live(lane)
    if lane.live:
        return livetime.ask(lane)
    made: int = lane.reads + lane.ahead
    tapedtime.ask(lane)
    lane.ahead = made - lane.reads
    lane.next_jump = lane.reads  # the next read looks whether it is time
    return made


def is_live(lane: Any = None) -> bool:
    """Whether a lane, by default the current one, has left the tape."""
    lane = lane or _get(None) or current()
    if not lane.live and _cut(lane).meetings >= 0 and _is_due(lane):
        _go_live(lane)
    return bool(lane.live)


def leave(lane: Any) -> None:
    """The lane leaves the tape here: it has got something that is not on it."""
    if not lane.live:
        _go_live(lane)


def _turn(lane: Any, number: int) -> int:
    """Make a read that does not simply tick, or that may be the first one past the lane's cut."""
    if _is_due(lane):
        _go_live(lane)
        return livetime.read()
    before, made, slept = lane.time, number + lane.ahead, lane.rest is not None
    lane.reads = number + 1
    value = tapedtime.turn(lane, number)
    lane.ahead = made + 1 - lane.reads
    cut = _cut(lane)
    if lane.requests >= cut.requests:
        # Meetings come between two reads, and do not say so.
        lane.next_jump = min(lane.next_jump, lane.reads if cut.meetings > 0 else max(cut.reads, lane.reads))
    if slept:
        channel.emit("clock", lane=lane.id, n=made, ns=value, slept=True)
    elif before is None or value != before + TICK:
        channel.emit("clock", lane=lane.id, n=made, ns=value)
    return value


def _is_due(lane: Lane) -> bool:
    cut = _cut(lane)
    return lane.requests >= cut.requests and lane.reads >= cut.reads and lane.met >= cut.meetings


def _go_live(lane: Any) -> None:
    """Leave the tape: from here on the lane reads as while recording."""
    timeline.go_live()
    lane.live = True
    lane.reads += lane.ahead
    lane.ahead = 0
    lane.jumps = None
    if lane.rest is not None:
        lane.rest = 0
    if _jump is not None:
        _set_clock(lane, _jump)


def _set_clock(lane: Lane, jump: dict[str, Any]) -> None:
    """Have live clocks begin where the fork wants them to; the first lane of a process that leaves the tape says it."""
    global _set
    if _set:
        return
    _set = True
    here = tapedtime.instant() if lane.time is None else lane.time
    livetime.set_to(jump["clock"] if jump["absolute"] else here + jump["clock"])


def _cut(lane: Any) -> _Cut:
    """Where the lane leaves the tape."""
    found: _Cut = lane.cut or _find_cut(lane)
    lane.cut = found
    return found


def _find_cut(lane: Lane) -> _Cut:
    """Look the lane up. One that is not on the tape is live if the nearest one above it that is leaves the tape."""
    cuts = _load()
    name = lane.id
    while name not in cuts:
        if tapedtime.knows(name):
            return _NOWHERE
        name = name.rpartition("/")[0]
        if not name:
            return _NOWHERE
    return cuts[name] if name == lane.id else _Cut(0, 0, 0)


def _load() -> dict[str, _Cut]:
    global _cuts, _jump
    if _cuts is None:
        found = {}
        for line in tapedtime.lines_in(settings.FORK_FILE):
            if "clock" in line:
                _jump = line
            else:
                found[line["lane"]] = _Cut(line["requests"], line["reads"], line["meetings"])
        _cuts = found
    return _cuts
