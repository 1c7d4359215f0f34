"""Sleeps. Recording, time.sleep sleeps; in a replay it returns as soon as nothing else is at work.

In both, the lane's clock is told of each sleep, asyncio's and trio's too: who polls with them may go another number of
rounds in a replay, and the first read after a sleep is where the lane's clock finds its place on the tape again.
"""

from __future__ import annotations

from _thread import get_ident

from . import clock, hooks, settings
from .lanes import LANE, current
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A child process that runs may be what the sleep is for (a tool server that is starting), or may run all day. So the
# first sleep of a row gives it a moment, and each further one half as much again: who polls for it must find it.
_MOMENT = 30_000_000
_ROW = 10_000_000  # ns of work that end the row
_LONGEST = 9_000_000_000  # seconds; time.sleep takes little more
_MOST = 40  # sleeps, after which a moment is longer than any sleep

patient = False
"""Whether sleeps are real as long as a child process runs."""
_sleep = clock.REAL.sleep
_monotonic = clock.REAL.perf_counter_ns
_rows = {}  # type: dict[int, tuple[int, int]]  # thread: sleeps in a row, and when the last one ended


def sleep_recording(_: object, seconds: float, /) -> None:
    _sleep(seconds)
    clock.rest(LANE.get(None) or current(), seconds)


def sleep_replaying(_: object, seconds: float, /) -> None:
    from . import timeline

    ns = _nanoseconds(seconds)
    if ns < 0:
        _sleep(seconds)  # says what is wrong with it
        return
    thread = get_ident()
    row, ended = _rows.get(thread, (0, 0))
    row = min(row + 1, _MOST) if _monotonic() - ended < _ROW else 0
    patience = timeline.FOREVER if patient else _MOMENT * 1.5**row
    timeline.wait(timeline.now() + ns, _sleep, _never, patience)
    _rows[thread] = (row, _monotonic())
    lane = LANE.get(None) or current()
    clock.rest(lane, ns)
    clock.advance(lane, ns)


def sleep_forking(_: object, seconds: float, /) -> None:
    from . import forkedtime

    (sleep_recording if forkedtime.is_live() else sleep_replaying)(_, seconds)


def _never() -> bool:
    return False


def install() -> None:
    """Replace time.sleep; in a replay, have event loops and locks take part in the timeline too."""
    skips = settings.REPLAY or settings.SKIP
    clock.stand_in(sleep_forking if settings.FORK else sleep_replaying if skips else sleep_recording, "sleep")
    clock.install()
    hooks.on_import("asyncio.tasks", _count)
    hooks.on_import("trio._timeouts", _count)
    if skips:
        from . import locks, loops

        loops.install()
        locks.install()


def _count(module: Any) -> None:
    """Tell the lane's clock of this module's sleeps; how long they take is the event loop's business."""
    original = module.sleep

    async def sleep(delay: Any, *args: Any, **kwargs: Any) -> Any:
        lane = LANE.get(None) or current()
        clock.rest(lane, delay)
        found = await original(delay, *args, **kwargs)
        clock.advance(lane, max(_nanoseconds(delay), 0))
        return found

    module.sleep = resemble(sleep, original)


def _nanoseconds(seconds: Any) -> int:
    """The sleep's length; negative where the real function is to judge it."""
    if isinstance(seconds, float):
        return int(float(seconds) * 1_000_000_000) if 0 <= seconds < _LONGEST else -1
    if hasattr(type(seconds), "__index__"):
        whole = int(seconds)
        return whole * 1_000_000_000 if 0 <= whole < _LONGEST else -1
    return -1
