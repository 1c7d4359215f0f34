"""Acquiring a watched lock in a replay: in the order of the tape. Knows whose turn it is, and when a turn can't come.

Then one drift is reported, and from there on the lock is acquired as it comes. So what is wrong costs the order of one
lock and never the run: nothing here waits without an end, but for a lock that somebody holds.
"""

from __future__ import annotations

import os
import sys
from _thread import TIMEOUT_MAX, allocate_lock, get_ident

from . import channel, clock, hooks, lockwaits, timeline
from .callers import line_of
from .idleness import child_runs
from .likeness import resemble
from .lockorder import Watched, flow, is_own_question
from .locktape import LET_GO, ORDER_LOCK, TAKE_HOLD, Order, order_of
from .locktypes import REAL_ACQUIRE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Seconds without an acquisition anywhere in the process that a turn is waited for; each time it comes to that, the next
# wait is half as long. Where something is at work, or waits for what is outside, it is given longer.
_QUIET = 5.0
_BUSY = 60.0
_AT_WORK = 0.2  # share of the time on the CPU that makes a process one at work
_FIRST_LOOK, _LONGEST_NAP = 0.002, 0.1
_DEADLOCK = 1.0  # seconds for which nobody in the process can go on
# The same where it costs an order only. One that was just given a lock looks as if it still waited (from 3.14 on a lock
# goes from hand to hand), for as long as a busy machine does not let it run.
_STUCK = 0.25
_OUTSIDE = ("socket.py", "ssl.py", "selectors.py", "subprocess.py", "popen_fork.py", "connection.py")

_waiting: dict[int, tuple[str, Watched]] = {}  # by thread: its flow, and what it waits for its turn at
_ended: set[str] = set()  # flows that will acquire nothing more
_progress = 0  # acquisitions of all watched locks
_patience = 1.0
_monotonic, _cpu = lockwaits.now, clock.REAL.process_time


def install() -> None:
    """Hear of flows that end."""
    hooks.on_import("threading", lambda module: _hear_of_end(module.Thread, "_bootstrap_inner"))
    hooks.on_import("concurrent.futures.thread", lambda module: _hear_of_end(module._WorkItem, "run"))
    os.register_at_fork(after_in_child=_after_fork)


def acquire(lock: Any, watched: Watched, real: Callable[..., bool], blocking: Any, timeout: Any) -> bool:
    """Acquire the lock with `real(lock, blocking, timeout)` when the tape has it so; returns and raises what that does.

    Where the tape says that it was refused, or that the time was over, so it is now, at once.
    """
    if not blocking and is_own_question():
        return real(lock, False, -1)
    who = flow()
    order = watched.order or order_of(watched)
    if who is None or order.free or not _is_valid(blocking, timeout):
        return _acquire_freely(lock, watched, real, blocking, timeout)
    if not _is_turn(order, who) and not _await_turn(watched, order, who):
        return _acquire_freely(lock, watched, real, blocking, timeout)
    _, gets = order.turn()
    if gets:
        return _take(lock, watched, order, real, blocking, timeout)
    if blocking and timeout < 0:
        _drift(watched, order, who, f"{who} was refused it on the tape, and now waits for it")
        return _acquire_freely(lock, watched, real, blocking, timeout)
    if blocking:
        lockwaits.spare(timeout)
    _advance(order)
    return False


def _is_valid(blocking: object, timeout: object) -> bool:
    """Whether these are arguments that acquire takes."""
    if not isinstance(blocking, int) or not isinstance(timeout, (int, float)):
        return False
    return timeout == -1 or (bool(blocking) and 0 <= timeout <= TIMEOUT_MAX)


def _is_turn(order: Order, who: str) -> bool:
    TAKE_HOLD()
    try:
        return order.turn()[0] == who
    finally:
        LET_GO()


def _take(lock: Any, watched: Watched, order: Order, real: Callable[..., bool], blocking: Any, timeout: Any) -> bool:
    """It is our turn: wait until who has the lock lets it go."""
    got = False
    most = timeline.FOREVER if blocking and timeout < 0 else max(timeout, _QUIET)
    try:
        got = real(lock, False, -1) or timeline.during(
            timeline.FOREVER, lambda: not _is_held(lock), _await_release, lock, watched, real, most
        )
        if got:
            _advance(order)
            return True
    except BaseException:
        if got:
            watched.release(lock)
        raise
    who = order.turn()[0]
    _drift(watched, order, who, f"{who} got it on the tape, and now not in time")
    return real(lock, blocking, timeout)


def _acquire_freely(lock: Any, watched: Watched, real: Callable[..., bool], blocking: Any, timeout: Any) -> bool:
    """Acquire the lock as it comes; where that takes for ever, see why."""
    if not blocking or timeout != -1:
        return real(lock, blocking, timeout)  # an error, too
    return real(lock, False, -1) or timeline.during(
        timeline.FOREVER, lambda: not _is_held(lock), _await_release, lock, watched, real
    )


def plain(real: Callable[..., bool]) -> Callable[..., bool]:
    """What acquires locks that are not watched: as ever, but others see that this thread waits."""

    def acquire(lock: Any, blocking: Any, timeout: Any) -> bool:
        if not blocking or timeout != -1:
            return real(lock, blocking, timeout)
        return real(lock, False, -1) or timeline.during(
            timeline.FOREVER, lambda: not _is_held(lock), real, lock, True, -1
        )

    return acquire


def _is_held(lock: Any) -> bool:
    if hasattr(lock, "locked"):
        return bool(lock.locked())
    return "unlocked" not in repr(lock)[:20]  # an RLock before 3.14


def _await_release(lock: Any, watched: Watched, real: Callable[..., bool], most: float = timeline.FOREVER) -> bool:
    """Acquire the lock when it is released; False after `most` seconds, or if only those could end the wait."""
    begun, stuck = _monotonic(), 0.0
    limited = most != timeline.FOREVER
    while not real(lock, True, _LONGEST_NAP if stuck or not limited else _FIRST_LOOK):
        now = _monotonic()
        if now - begun > most:
            return False
        if (watched.condition is not None and not limited) or _waiting or not timeline.is_stuck():
            stuck = 0.0
        elif not stuck:
            stuck = now
        elif limited:
            return False
        elif now - stuck > _DEADLOCK:
            _end_deadlock(watched)
    return True


def _await_turn(watched: Watched, order: Order, who: str) -> bool:
    """Wait for our turn; False when the lock is free for all."""
    signal = allocate_lock()
    REAL_ACQUIRE(signal)
    TAKE_HOLD()
    try:
        if order.free or order.turn()[0] == who:
            return not order.free
        order.waiters[who] = signal
    finally:
        LET_GO()
    thread = get_ident()
    _waiting[thread] = (who, watched)
    try:
        woken = lambda: order.waiters.get(who) is not signal  # noqa: E731  # not signal.locked(): see _STUCK
        timeline.during(timeline.FOREVER, woken, _watch_turn, signal, watched, order, who)
    finally:
        _waiting.pop(thread, None)
        order.waiters.pop(who, None)
    return not order.free


def _watch_turn(signal: Any, watched: Watched, order: Order, who: str) -> None:
    nap, stuck = _FIRST_LOOK, 0.0
    since, cpu, seen = _monotonic(), _cpu(), _progress
    while not REAL_ACQUIRE(signal, True, nap) and not order.free:
        owner, n = _next_of(order)
        if owner == who:  # two threads with one name: only one of them has been told
            return
        now = _monotonic()
        if seen != _progress:
            since, cpu, seen, stuck = now, _cpu(), _progress, 0.0
        if owner in _ended:
            _drift(watched, order, owner, f"{owner} has ended", n)
        elif timeline.is_stuck():
            stuck = stuck or now
            if now - stuck > _STUCK:
                _drift(watched, order, owner, "nobody in the process can go on", n)
        else:
            stuck = 0.0
            waited = now - since
            if waited > _QUIET * _patience and (waited > _BUSY * _patience or not _is_at_work(waited, cpu)):
                _drift(watched, order, owner, f"{owner} has not come for {waited:.1f} s", n)
        nap = min(nap * 1.5, _LONGEST_NAP)


def _next_of(order: Order) -> tuple[str, int]:
    """Whose turn it is, and its number."""
    TAKE_HOLD()
    try:
        return order.turn()[0], order.n
    finally:
        LET_GO()


def _is_at_work(waited: float, cpu: float) -> bool:
    if _cpu() - cpu > waited * _AT_WORK or child_runs():
        return True
    files = (frame.f_code.co_filename for frame in sys._current_frames().values())
    return any(file.rpartition(os.sep)[2] in _OUTSIDE for file in files)


def _advance(order: Order) -> None:
    """The turn is over: on to the next."""
    global _progress
    TAKE_HOLD()
    try:
        order.n += 1
        _progress += 1
        if order.waiters:
            signal = order.waiters.pop(order.turn()[0], None)
            if signal is not None:
                signal.release()
    finally:
        LET_GO()


def _drift(watched: Watched, order: Order, owner: str, why: str, n: int | None = None) -> None:
    """Report that the order of a lock can't be kept, and keep it no longer. `n`: unless that turn is over by now."""
    global _patience
    TAKE_HOLD()
    try:
        if order.free or (n is not None and order.n != n):
            return
        order.free = True
        if watched.condition is not None and watched.condition.order is not None:
            watched.condition.order.free = True
        if "has not come" in why:
            _patience /= 2
        waiters, where = list(order.waiters.values()), _where()
        order.waiters.clear()
        number = order.n
    finally:
        LET_GO()
    place = _made(watched)
    channel.emit(
        "note",
        what="lock-order",
        lane=owner,
        text=f"the lock made at {place} was to go to lane {owner} as number {number}, but {why}; "
        + ("waiting: " + ", ".join(where) if where else "nobody waits"),
        data={"lock": watched.id, "made": place, "n": number, "turn": owner, "waiting": where},
    )
    for signal in waiters:
        signal.release()


def _end_deadlock(watched: Watched) -> None:
    """Every thread waits for a lock that another one holds, as it would without us: say so, and end the process."""
    where = [line_of(frame) for frame in sys._current_frames().values()]
    channel.emit(
        "note",
        what="lock-order",
        lane=flow(),
        text=f"deadlock: nobody can go on, this process is ended; it waits for the lock made at {_made(watched)}, in "
        + ", ".join(filter(None, where)),
        data={"lock": watched.id, "made": _made(watched), "waiting": where},
    )
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(_DEADLOCKED)


_DEADLOCKED = 4  # as a replay with a drift exits


def _made(watched: Watched) -> str:
    return "{}:{}".format(*(watched.condition or watched).made)


def _where() -> list[str]:
    """Who waits for a turn, and where: `LANE at FILE:LINE in FUNCTION`."""
    frames = sys._current_frames()
    return [f"lane {who} at {line_of(frames.get(thread))}" for thread, (who, _) in sorted(_waiting.items())]


def _hear_of_end(cls: Any, name: str) -> None:
    original = getattr(cls, name)

    def run(self: Any, *args: Any) -> Any:
        lane = self.__dict__.get("_tapeproxy_lane")
        try:
            return original(self, *args)
        finally:
            self = None  # as in threads.give_lanes
            if lane is not None:
                _ended.add(lane.id)

    setattr(cls, name, resemble(run, original))


def _after_fork() -> None:
    ORDER_LOCK._at_fork_reinit()
    _waiting.clear()
