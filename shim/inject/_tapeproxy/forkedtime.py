"""Time in a fork: a lane's clock is the tape's up to its cut, then real; all of it is taped anew. Patches nothing.

The launcher says at which request and read each lane of the causal future leaves the tape. From there on the lane reads
as while recording. Before, and in lanes outside of the future, it reads as in a replay, and each read that gave more
than a tick is told, so that the child tape has the whole clock. A lane that is not on the tape goes by those above it.

In an update nobody knows that before. The wire adds a line to the launcher's file when it sends a request out into the
world, before the answer comes: its lane has left the tape. So has, from there on, who comes to know of it.
"""

from __future__ import annotations

from _io import open as _open  # what `--io` does not watch
from os import stat as _stat

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
_ANYWHERE = _Cut(0, 0, 1)
"""Of an update: wherever the wire says."""
_ALL = 1 << 62  # requests, of a place at a lane's end

_get = LANE.get
_cuts = None  # type: dict[str, _Cut] | None
_jump = None  # type: dict[str, Any] | None  # what the clock jumps to, in place of the real time
_set = False  # this process's live clock stands where it shall
_update = False
_left = {}  # type: dict[str, tuple[int, int]]  # lanes that have left in an update: after so many requests and meetings
_heard = 0  # bytes of the launcher's file that are read


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
    if not lane.live and (_has_left(lane) if cut is _ANYWHERE else lane.requests >= cut.requests):
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


def meet(lane: Any, other: str, at: Any) -> None:
    """The lane comes to know what `other` knew at this place."""
    _load()
    if _update and lane.id not in _left:
        _hear()
        if _has_told(other, at):
            _note(lane.id, lane.requests, lane.met)


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
    if cut is _ANYWHERE:
        return _has_left(lane)
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
    if _update:
        return _ANYWHERE
    name = lane.id
    while name not in cuts:
        if tapedtime.knows(name):
            return _NOWHERE
        name = name.rpartition("/")[0]
        if not name:
            return _NOWHERE
    return cuts[name] if name == lane.id else _Cut(0, 0, 0)


def _load() -> dict[str, _Cut]:
    global _cuts, _jump, _update
    if _cuts is None:
        found = {}
        for line in tapedtime.lines_in(settings.FORK_FILE):
            if "update" in line:
                _update = True
            elif "clock" in line:
                _jump = line
            elif "lane" in line:
                found[line["lane"]] = _Cut(line["requests"], line["reads"], line["meetings"])
        _cuts = found
    return _cuts


def _has_left(lane: Any) -> bool:
    """Of an update: whether the lane has left the tape, or was made by one that had."""
    _hear()
    if lane.id in _left:
        return True
    origin = lane.origin
    if origin is None or not _has_told(origin[0], origin[1:3]):
        return False
    _note(lane.id, 0, 0)
    return True


def _has_told(id: str, at: Any) -> bool:
    """Whether who knows a lane as it was at this place knows something that is not on the tape."""
    if at[0] == _ALL:  # its end, and that of all below it
        below = id + "/"
        return any(name == id or name.startswith(below) for name in _left)
    return id in _left and tuple(at) >= _left[id]


def _note(id: str, requests: int, met: int) -> None:
    """Take note that a lane has left, and tell the wire, by its last request before that."""
    _left[id] = (requests, met)
    channel.emit("left", lane=id, request=requests - 1)


def _hear() -> None:
    """Read what the wire has added to its file."""
    global _heard
    size = _stat(settings.FORK_FILE).st_size
    if size == _heard:
        return
    scan = tapedtime.scanner()
    with _open(settings.FORK_FILE, "rb") as file:
        file.seek(_heard)
        text = file.read()
    whole = text[: text.rfind(b"\n") + 1]
    _heard += len(whole)
    for line in whole.decode().splitlines():
        told = scan(line, 0)[0]
        if "left" in told:
            _left.setdefault(told["left"], (told["request"] + 1, 0))
