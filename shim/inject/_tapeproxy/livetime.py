"""Time while recording: the real clock, told to the agent so that a replay needs only its jumps. Patches nothing.

A read gives the lane's previous value plus 100 ns. Only where real time has run further ahead than that does the read
jump to it, and is taped. No value is ever ahead of the real clock, so a lane that reads after another one has read
jumps to real time, and time never goes back in the process.

No lock is taken. CPython from 3.10 on changes threads only at calls and at backward jumps, so what stands between two
calls below happens at once. On 3.9 it may be torn; the worst is then a read that overlaps another thread's, which may
as well have come before it: a later read of any lane starts from the real clock all the same.
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
_limit = NEAR - _base
_last: Any = None  # the lane that jumped last: only it may tick on
_jump_number = 0  # of the last jump in its lane
_jump_value = 0
_debt = 0  # monotonic ns at which all jumps so far are paid for
_worth = _TIGHT  # ns between two fine reads that are worth timing now
_seen = 0  # monotonic ns at the end of the last fine read
_skew = 0  # ns that fine reads spent on taping, kept out of what they time


def read() -> int:
    """Read the current lane's clock: ns since the epoch."""
    try:
        lane = _get()
        real = _monotonic()
        value: int = lane.time + 100
        if real - value <= _limit and lane is _last:
            lane.reads += 1
            lane.time = value
            return value
    except (LookupError, TypeError):  # nobody's thread, or the lane's first read
        lane = current()
    return _jump(lane)


def seconds(_: object) -> float:
    """time.time(): like read(), whose lines stand here again because a call would cost a tenth of the whole."""
    try:
        lane = _get()
        real = _monotonic()
        value: int = lane.time + 100
        if real - value <= _limit and lane is _last:
            lane.reads += 1
            lane.time = value
            return value / 1e9
    except (LookupError, TypeError):
        lane = current()
    return _jump(lane) / 1e9


def read_fine() -> int:
    """Read like read(), but let small real differences through: what a stopwatch is for."""
    global _seen
    lane: Any = _get(None) or current()
    raw = _monotonic()
    if lane is _last:
        ahead = raw - _skew + _base - lane.time - TICK
        if ahead <= _FINE or (ahead <= _limit + _base and (raw - _seen < _worth or _debt - raw > _BURST)):
            _seen = raw
            lane.reads += 1
            value: int = lane.time + TICK
            lane.time = value
            return value
        if (ahead <= NEAR or ahead < 64 * _skew) and _skew < _MOST_SKEW:
            return _jump_fine(lane, raw)
    value = _jump(lane)
    _seen = _monotonic()
    return value


def advance(ns: int) -> None:
    """Move the current lane's clock on, after a sleep that took at least so long."""
    lane = _get(None) or current()
    if lane.time is not None:
        lane.time += ns


def _jump(lane: Lane) -> int:
    """Give the real time, and tape it."""
    global _skew
    wall = _wall()
    now = _monotonic()
    if wall - now - _base > _STEP:
        _follow(wall - now)
    number, value = _take(lane, now + _base)
    _skew = 0
    channel.emit("clock", lane=lane.id, n=number, ns=value)
    _pace(now, number, value)
    return value


def _jump_fine(lane: Lane, raw: int) -> int:
    """Give the real time less what taping has cost the agent's stopwatches, and tape it."""
    global _seen, _skew
    number, value = _take(lane, raw - _skew + _base)
    channel.emit("clock", lane=lane.id, n=number, ns=value)
    _pace(raw, number, value)
    _seen = _monotonic()
    _skew += _seen - raw
    return value


def _take(lane: Any, real: int) -> tuple[int, int]:
    """Make the lane's next read: its number and value."""
    global _last
    value = real
    high = None if _last is None else _last.time  # a fork may have reset that lane
    if high is not None and value < high:
        value = high
    if lane.time is not None and value < lane.time + TICK:
        value = lane.time + TICK
    number = lane.reads
    lane.reads = number + 1
    lane.time = value
    _last = lane
    return number, value


def _pace(now: int, number: int, value: int) -> None:
    """Pay for a jump, and choose how far real time may run ahead from here."""
    global _debt, _limit, _worth, _jump_number, _jump_value
    reads = number - _jump_number
    tight = reads > 32 and value - _jump_value < reads * _TIGHT
    _jump_number, _jump_value = number, value
    owed = max(_debt - now, 0)
    _debt = now + min(owed, _BURST) + _PRICE
    _limit = (FAR if tight or owed > _BURST else NEAR) - _base
    _worth = _WORK if tight else _TIGHT


def _follow(base: int) -> None:
    """Go on from a wall clock that moved forward without us; one that was set back is left to catch up."""
    global _base, _limit
    _limit += _base - base
    _base = base
