"""uvloop in a replay: its timers kept in Python, so that a loop with nothing but timers can leap to the next one.

uvloop can't be told to poll, nor asked what it listens to. So a tick of ours looks now and then whether every task
sleeps or waits for another task, judging by the functions that they wait in. What it can't judge counts as waiting for
the outside world: a task inside any installed library, unless it is in asyncio.sleep, and every loop that
serves, reads a pipe or uses bare sockets. Such a loop waits really; it is slower than asyncio's then, never wrong.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count

from . import loops, timeline
from .idleness import is_installed, is_of_the_stdlib
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, ModuleType
    from typing import Any

_SOONEST = 0.001  # seconds from one look to the next
_LATEST = 0.02
_LISTENING = (
    "add_reader",
    "add_writer",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_server",
    "create_unix_server",
    "create_datagram_endpoint",
    "sock_accept",
    "sock_recv",
    "sock_recv_into",
)
_order = count()


def patch(module: ModuleType) -> None:
    """Give uvloop's loops our timers."""
    cls = module.Loop
    cls.time = resemble(_time, cls.time)
    cls.call_at = resemble(_call_at, cls.call_at)
    cls._own_call_later = cls.call_later
    cls.call_later = resemble(_call_later, cls.call_later)
    cls._timer_handle_cancelled = _ignore  # what asyncio's handles tell their loop
    for name in _LISTENING:
        setattr(cls, name, _noting(getattr(cls, name)))


def _time(_: Any) -> float:
    return loops.loop_time()


def _call_later(self: Any, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
    return self.call_at(self.time() + max(delay, 0), callback, *args, context=context)


def _call_at(self: Any, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
    handle = asyncio.TimerHandle(when, callback, args, self, context)
    timers = vars(self).get("_virtual_timers")
    if timers is None:
        timers = self._virtual_timers = _Timers(self)
    timers.add(handle)
    return handle


def _ignore(self: Any, handle: Any) -> None:
    pass


def _noting(original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._virtual_listens = True
        return original(self, *args, **kwargs)

    return resemble(method, original)


class _Timers:
    """The timers of one loop, soonest first, and the tick that runs them."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.heap = []  # type: list[tuple[float, int, asyncio.TimerHandle]]
        self.alarm = None  # type: Any
        self.look = _SOONEST
        self.calm = False

    def add(self, handle: asyncio.TimerHandle) -> None:
        heappush(self.heap, (handle.when(), next(_order), handle))
        self.calm, self.look = False, _SOONEST
        self._arm()

    def _arm(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        while self.heap and self.heap[0][2].cancelled():
            heappop(self.heap)
        self.alarm = None
        if self.heap:
            left = max(self.heap[0][0] - self.loop.time(), 0)
            self.alarm = self.loop._own_call_later(min(left, self.look), self._tick)

    def _tick(self) -> None:
        self.alarm = None
        ran = self._run_due()
        still = not ran and _is_idle(self.loop) and timeline.is_still()
        if still and self.calm:  # twice, for a thread may have ended between, with a call for the loop on its way
            left = self.heap[0][0] - self.loop.time()
            timeline.leap(timeline.now() + int(left * 1e9))
        self.calm = still
        self.look = _SOONEST if ran or still else min(self.look * 1.5, _LATEST)
        self._arm()

    def _run_due(self) -> bool:
        """Run the timers that are due; whether there was one."""
        now = self.loop.time()
        ran = False
        while self.heap and self.heap[0][0] <= now:
            handle = heappop(self.heap)[2]
            if not handle.cancelled():
                ran = True
                handle._run()
        return ran or not self.heap


def _is_idle(loop: Any) -> bool:
    if getattr(loop, "_virtual_listens", False):
        return False
    for task in asyncio.all_tasks(loop):
        waiter = getattr(task, "_fut_waiter", None)
        if waiter is None or waiter.done() or _may_listen(list(_chain(task.get_coro()))):
            return False
    return True


def _chain(awaited: Any) -> Iterator[CodeType]:
    """The functions a task is in, outermost first."""
    while awaited is not None:
        for kind in ("cr", "gi", "ag"):
            code = getattr(awaited, kind + "_code", None)
            if code is not None:
                yield code
                awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else kind + "_await")
                break
        else:
            return


def _may_listen(chain: list[CodeType]) -> bool:
    """Whether a task in these functions may be waiting for something from outside the process."""
    if not chain:
        return True
    last = chain[-1]
    if last.co_name == "sleep" and last.co_filename == asyncio.tasks.__file__:
        return False
    return any(is_installed(code.co_filename) or _is_io(code.co_filename) for code in chain)


def _is_io(file: str) -> bool:
    """Whether a file of the standard library is one that knows sockets or pipes."""
    return is_of_the_stdlib(file) and not file.endswith(_WITHIN)


_WITHIN = tuple(
    f"asyncio/{name}.py"
    for name in ("base_futures", "futures", "locks", "queues", "runners", "taskgroups", "tasks", "timeouts")
)
