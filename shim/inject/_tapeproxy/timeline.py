"""Waiting in a replay: how real waiting, done by whoever waits, is cut short. Knows waits, not sleeps or event loops.

All waits of a process lie on one line: real monotonic time plus what has been skipped so far. When nothing in the
process is at work, and nothing outside it is awaited, time leaps to the earliest end of a wait, as it would in a
simulation. Otherwise the wait is real: a thread that computes, a child that runs and an answer that is still to come
are never overtaken.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal itself makes enums, and takes 2 ms
import os
from _thread import allocate_lock, get_ident
from time import perf_counter_ns as _monotonic

from .idleness import Others, others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FOREVER = float("inf")

# The others are asked twice, so far apart that a thread which was just woken has had its turn.
_CONFIRM = 0.001
_LONGEST = 0.02  # seconds between two looks at the others
# So many leaps in a row, with no work between them, are a loop that polls; it then gets real pauses.
_PATIENCE = 64
_PAUSE = 0.001
_BREATHER = 300_000  # ns of work that end the row

_AT_ONCE = 1e-6  # seconds; an alarm of 0 never goes off
_getitimer = getattr(_signal, "getitimer", None)  # not on Windows

takes_alarms = True
"""Whether the process's alarm is the run's own; in somebody else's interpreter it is not."""
_leapt = 0  # ns skipped so far
_live = False  # a lane of this process has left the tape: from there on all waiting is real
_waits = {}  # type: dict[int, tuple[float, Callable[[], bool] | None]]  # thread: end of its wait; was it woken?
_lock = allocate_lock()
_row = 0  # leaps in a row
_landed = 0  # real ns of the last one


def now() -> int:
    """This process's place on the line, in ns."""
    return _monotonic() + _leapt


def wait(end: float, nap: Callable[[Any], Any], woken: Callable[[], bool], patience: float = FOREVER) -> Any:
    """Wait until the instant `end` (on the line, or FOREVER), or until `nap` returns something true; return that.

    `nap(seconds)` waits really: it is time.sleep, or a poll for events, which gets None to wait FOREVER. `woken` says
    whether another thread has ended the wait already, for it may take a while until this one comes to notice.
    Children that run keep time from leaping for `patience` ns.
    """
    if end == FOREVER:
        return during(end, woken, nap, None)
    return during(end, woken, _wait, end, nap, woken, _monotonic() + patience)


def during(end: float, woken: Callable[[], bool] | None, call: Callable[..., Any], *args: Any) -> Any:
    """Call `call(*args)`, a wait that ends at `end` if nobody wakes it; without `woken`, its frame will say if so."""
    thread = get_ident()
    outer = _waits.get(thread)
    _waits[thread] = (end, woken)
    try:
        return call(*args)
    finally:
        if outer is None:
            del _waits[thread]
        else:
            _waits[thread] = outer


def go_live() -> None:
    """Skip nothing from now on: whom a lane that has left the tape waits for, nobody can hurry."""
    global _live
    _live = True


def is_still() -> bool:
    """Whether nothing else in this process or below it is at work."""
    return others(_waits) in (Others.NONE, Others.IDLE)


def is_stuck() -> bool:
    """Whether nobody in this process is at work, and no wait will end by itself: not the caller's, either."""
    waits = dict(_waits)  # both are asked of one moment: a wait that ends in between would be missed
    return others(waits) in (Others.NONE, Others.IDLE) and all(end == FOREVER for end, _ in waits.values())


def leap(end: float) -> bool:
    """Skip what is left until `end`, and say so, unless another wait ends or the alarm goes off before it."""
    global _leapt, _landed
    if _live:
        return False
    with _lock:
        if any(other < end for other, _ in list(_waits.values())):
            return False
        left = max(int(end) - now(), 0)
        step = _run_alarm(left)
        _leapt += step
    _landed = _monotonic()
    return step == left


def _run_alarm(ns: int) -> int:
    """Let the process's alarm run by `ns`, as its time is skipped too, or until it goes off: how many ns that was."""
    if _getitimer is None or not takes_alarms:
        return ns
    due, interval = _getitimer(_signal.ITIMER_REAL)
    if not due:
        return ns
    step = min(ns, int(due * 1e9))
    _signal.setitimer(_signal.ITIMER_REAL, max(due - step / 1e9, _AT_ONCE), interval)
    return step


def _wait(end: float, nap: Callable[[Any], Any], woken: Callable[[], bool], patient_until: float) -> Any:
    pause = _first_pause()
    calm = False
    while True:
        if _live:
            return nap(max((end - now()) / 1e9, 0))
        left = (end - now()) / 1e9
        found = nap(max(min(pause, left), 0))
        if found or end <= now():
            return found
        who = others(_waits)
        still = who == Others.NONE or (who == Others.IDLE and calm)
        still = still or (who == Others.CHILDREN and _monotonic() > patient_until)
        if still and not woken() and leap(end):
            return found
        calm = who == Others.IDLE
        pause = _CONFIRM if calm else min(max(pause * 1.5, _CONFIRM), _LONGEST)


def _first_pause() -> float:
    global _row
    _row = _row + 1 if _monotonic() - _landed < _BREATHER else 0
    return _PAUSE if _row > _PATIENCE else 0


def _after_fork() -> None:
    global _lock
    _lock = allocate_lock()
    _waits.clear()


os.register_at_fork(after_in_child=_after_fork)
