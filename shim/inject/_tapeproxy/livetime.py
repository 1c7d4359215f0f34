"""Time while recording: the real clock, told to the agent so that a replay needs only its jumps. Patches nothing.

A read gives the lane's previous value plus 100 ns. Only where real time has run further ahead than that does the read
jump to it, and is taped. No value is ever ahead of the real clock, so a lane that reads after another one has read
jumps to real time, and time never goes back in the process.

No lock is taken. Whoever jumps becomes the last lane first, then reads the real clock, and is sure of its place only
if it is still the last lane then: so the last lane's time is the latest, and no other lane goes on without a jump.
CPython from 3.10 on changes threads only at calls and at backward jumps, so what stands between two calls happens at
once. Where it is torn (3.9), the worst is a read that overlaps another thread's, and may as well have come first.
"""

from __future__ import annotations

from time import perf_counter_ns as _monotonic  # the clock that no tool for tests reaches into
from time import time_ns as _wall

from . import channel
from .lanes import LANE, Lane, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TICK = 100
"""ns between two reads that did not jump; less than a read costs, or the clock would outrun the real one."""
NEAR = 100_000
"""ns that real time may run ahead before a read jumps."""
FAR = 5_000_000
"""The same in a loop that does little but read, or a process that jumps all the time: they must not fill the disk."""

_TIGHT = 2_000  # ns from read to read in such a loop
_BURST = 1_000_000_000  # ns of credit for jumps, spent before FAR is in force
_PRICE = 1_000_000  # ns of credit a jump costs: 1000 at once, and 1000 a second in the long run
_FINE = 1_000  # ns that real time may run ahead of a fine read
_WORK = 20_000  # ns between two fine reads in a tight loop that are worth timing
_MOST_SKEW = 5_000_000  # ns; a stopwatch may be wrong by a 64th, and once in a thousand times by this
_STEP = 1_000_000  # ns that the wall clock has to be ahead for the machine to have slept, or been set forward

_get: Any = LANE.get  # what has no time yet raises a TypeError below
_base = _wall() - _monotonic()  # wall clock less monotonic clock, which can't be set back under us
_quantum = NEAR  # ns that real time may run ahead now
_until = 0  # monotonic ns up to which it surely has not
_last: Any = None  # the lane that jumped last: only it may tick on
_jump_number = 0  # of the last jump in its lane
_jump_value = 0
_debt = 0  # monotonic ns at which all jumps so far are paid for
_worth = _TIGHT  # ns between two fine reads that are worth timing now
_seen = 0  # monotonic ns at the end of the last fine read
_offset = 0  # ns that the clock was set ahead of the real one, in a fork
_skew = 0  # ns that fine reads spent on taping, kept out of what they time


def begin() -> None:
    """Begin another run in the same interpreter."""
    global _base, _quantum, _until, _last, _jump_number, _jump_value, _debt, _worth, _seen, _offset, _skew
    _base = _wall() - _monotonic()
    _quantum, _worth, _last = NEAR, _TIGHT, None
    _until = _jump_number = _jump_value = _debt = _seen = _offset = _skew = 0


def read() -> int:
    """Read the current lane's clock: ns since the epoch."""
    try:
        lane = _get()
        if _monotonic() <= _until and lane is _last:
            value: int = lane.time + 100
            lane.time = value
            lane.reads += 1
            return value
    except (LookupError, TypeError):  # a thread of nobody's, or a forked lane's first read
        lane = current()
    return _look(lane)


def seconds(_: object) -> float:
    """time.time(): like read(), whose lines stand here again because a call would cost a tenth of the whole."""
    try:
        lane = _get()
        if _monotonic() <= _until and lane is _last:
            value: int = lane.time + 100
            lane.time = value
            lane.reads += 1
            return value / 1e9
    except (LookupError, TypeError):
        lane = current()
    return _look(lane) / 1e9


def read_fine() -> int:
    """Read like read(), but let small real differences through: what a stopwatch is for."""
    global _seen
    lane: Any = _get(None) or current()
    raw = _monotonic()
    if lane is _last and lane.time is not None:
        ahead = raw - _skew + _base - lane.time - TICK
        if ahead <= _FINE or (ahead <= _quantum and (raw - _seen < _worth or _debt - raw > _BURST)):
            _seen = raw
            return _tick(lane)
        if (ahead <= NEAR or ahead < 64 * _skew) and _skew < _MOST_SKEW:
            return _jump_fine(lane, raw)
    value = _jump(lane)
    _seen = _monotonic()
    return value


def rest(lane: Any, seconds: Any) -> None:
    """The lane has slept, or is about to. Its next read is taped and marked: there a replay finds its place again."""
    global _last
    if not seconds:  # it only lets others run, as libraries do at every turn
        return
    if not lane.sleeps:
        lane.awake = lane.reads
    lane.sleeps += 1
    lane.rest = 0
    if lane is _last:
        _last = None


def set_to(ns: int) -> None:
    """Have the clock stand at this instant now, in ns since the epoch, and go on from there."""
    global _base, _offset, _until
    _offset = ns - _wall()
    _base = ns - _monotonic()
    _until = 0


def advance(lane: Any, ns: int) -> None:
    """The lane has slept for so long, and real time with it."""


def ask(lane: Any) -> int:
    """The lane makes a request: how many reads it has made."""
    lane.rest = None
    reads: int = lane.reads
    return reads


def _look(lane: Any) -> int:
    """Make a read that may have to jump."""
    global _until
    now = _monotonic()
    if lane is _last and lane.time is not None:
        left = _quantum - (now + _base - lane.time - TICK)
        if left >= 0:
            _until = now + left
            return _tick(lane)
    return _jump(lane)


def _tick(lane: Any) -> int:
    value: int = lane.time + TICK
    lane.time = value
    lane.reads += 1
    return value


def _jump(lane: Lane) -> int:
    """Give the real time, and tape it."""
    global _base, _last, _skew
    before = _last
    wall = _wall() + _offset
    while True:
        _last = lane
        now = _monotonic()
        if _last is lane:  # else another thread's lane came between, and its time may be later than this
            break
    if wall - now - _base > _STEP:
        _base = wall - now  # the wall clock moved forward; one that was set back is left to catch up
    _skew = 0
    number, value = _take(lane, now + _base, before)
    if lane.rest is None:
        channel.emit("clock", lane=lane.id, n=number, ns=value)
    else:
        lane.rest = None
        channel.emit("clock", lane=lane.id, n=number, ns=value, slept=True)
    _pace(now, number, value)
    return value


def _jump_fine(lane: Lane, raw: int) -> int:
    """Give the real time less what taping has cost the agent's stopwatches, and tape it. The lane is the last one."""
    global _seen, _skew
    now = raw - _skew
    number, value = _take(lane, now + _base, None)
    channel.emit("clock", lane=lane.id, n=number, ns=value)
    _pace(now, number, value)
    _seen = _monotonic()
    _skew += _seen - raw
    return value


def _take(lane: Any, value: int, before: Any) -> tuple[int, int]:
    """Make the lane's next read, of `value` if that is not behind the lane itself or the one `before`: n and value."""
    if before is not None and before.time is not None and value < before.time:
        value = before.time
    if lane.time is not None and value < lane.time + TICK:
        value = lane.time + TICK
    number = lane.reads
    lane.reads = number + 1
    lane.time = value
    return number, value


def _pace(now: int, number: int, value: int) -> None:
    """Pay for a jump, and choose how far real time may run ahead from here."""
    global _debt, _quantum, _until, _worth, _jump_number, _jump_value
    reads = number - _jump_number
    tight = reads > 32 and value - _jump_value < reads * _TIGHT
    _jump_number, _jump_value = number, value
    owed = max(_debt - now, 0)
    _debt = now + min(owed, _BURST) + _PRICE
    _quantum = FAR if tight or owed > _BURST else NEAR
    _until = now + _quantum
    _worth = _WORK if tight else _TIGHT
