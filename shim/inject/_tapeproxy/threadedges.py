"""Where threads learn of each other: join, futures, events, barriers. Knows how each hands things over.

A pool's thread has a soft lane, which learns nothing; what it has run, whoever joins it learns of.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

from . import settings
from .edges import absorb, learn, place
from .lanes import LANE, current
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FROM = "_tapeproxy_from"
_MOST_RUN = 10_000
"""Work items that a pool's thread remembers."""
_OWN_EVENTS = frozenset(("threading", "concurrent.futures._base", "multiprocessing.pool", "asyncio.base_events"))
"""Modules whose waits for events of their own say nothing about who set them."""


def patch_threading(module: Any) -> None:
    """Whoever joins a thread knows what it did; whoever sees an event set, what was known to those who set it."""
    cls = module.Thread
    join, bootstrap = cls.join, cls._bootstrap_inner

    def join_and_learn(self: Any, timeout: float | None = None) -> None:
        join(self, timeout)
        lane = self.__dict__.get("_tapeproxy_lane")
        if lane is not None and lane.id[0] != "?" and (timeout is None or not self.is_alive()):
            learn("join", lane.place())

    def bootstrap_and_absorb(self: Any) -> None:
        try:
            bootstrap(self)
        finally:
            lane = self.__dict__.get("_tapeproxy_lane")
            if lane is not None and lane.id[0] != "?":
                absorb(lane)

    cls.join = resemble(join_and_learn, join)
    cls._bootstrap_inner = resemble(bootstrap_and_absorb, bootstrap)
    _patch_event(module.Event)
    if settings.MORE_EDGES:
        _patch_barrier(module.Barrier)


def _patch_event(cls: Any) -> None:
    set_event, wait = cls.set, cls.wait

    def set_and_let_know(self: Any) -> None:
        known = place()
        if known is not None:
            self.__dict__[_FROM] = known
        set_event(self)

    def wait_and_learn(self: Any, timeout: float | None = None) -> bool:
        found: bool = wait(self, timeout)
        known = self.__dict__.get(_FROM)
        if found and known is not None and sys._getframe(1).f_globals.get("__name__") not in _OWN_EVENTS:
            learn("event", known)
        return found

    cls.set, cls.wait = resemble(set_and_let_know, set_event), resemble(wait_and_learn, wait)


def _patch_barrier(cls: Any) -> None:
    """Who is let through knows what was known to all who have come."""
    wait = cls.wait
    lock = allocate_lock()

    def wait_and_learn(self: Any, timeout: float | None = None) -> int:
        known = place()
        with lock:
            # Nobody can come to the next round before all of this one have come.
            come: list[Any] = self.__dict__.setdefault(_FROM, [])
            come.append(known)
            if len(come) >= self.parties:
                del self.__dict__[_FROM]
        try:
            number: int = wait(self, timeout)
        except BaseException:
            self.__dict__.pop(_FROM, None)  # broken: who comes after a reset begins anew
            raise
        for known in sorted(one for one in come if one is not None):
            learn("barrier", known)
        return number

    cls.wait = resemble(wait_and_learn, wait)


def patch_futures(module: Any) -> None:
    """Whoever gets a future's result knows what was known to the one who set it."""
    cls = module.Future
    for name in ("set_result", "set_exception"):
        setattr(cls, name, _setting(getattr(cls, name)))
    for name in ("result", "exception"):
        setattr(cls, name, _getting(getattr(cls, name)))
    wait = module.wait

    def wait_and_learn(fs: Any, *args: Any, **kwargs: Any) -> Any:
        found = wait(fs, *args, **kwargs)
        for known in sorted(_known(found.done)):
            learn("result", known)
        return found

    module.wait = resemble(wait_and_learn, wait)
    if settings.MORE_EDGES:
        _patch_as_completed(module)


def _patch_as_completed(module: Any) -> None:
    as_completed = module.as_completed

    def complete_and_learn(fs: Any, timeout: float | None = None) -> Any:
        # Through map: no future is held between two steps, as without us.
        yield from map(_learned, as_completed(fs, timeout))

    module.as_completed = resemble(complete_and_learn, as_completed)


def _learned(future: Any) -> Any:
    learn("result", future.__dict__.get(_FROM))
    return future


def _known(futures: Any) -> list[Any]:
    return [found for one in futures if (found := one.__dict__.get(_FROM)) is not None]


def _setting(original: Callable[..., None]) -> Callable[..., None]:
    def set_and_let_know(self: Any, value: Any) -> None:
        # Of a pool of processes' item the manager's thread says so, and what is known is on the future already. asyncio
        # copies a task's result in a callback, whose lane is not the task's: taskedges has said what that knew.
        lane = LANE.get(None) or current()
        absorb(lane)
        known = lane.place()
        if known is not None and (_FROM not in self.__dict__ or _caller() != "asyncio.futures"):
            self.__dict__[_FROM] = known
        original(self, value)

    return resemble(set_and_let_know, original)


def _getting(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_and_learn(self: Any, timeout: float | None = None) -> Any:
        try:
            return original(self, timeout)
        finally:
            known = self.__dict__.get(_FROM)
            # asyncio copies the state in a callback, whenever that comes: whoever awaits the copy learns.
            if known is not None and self._state == "FINISHED" and _caller() != "asyncio.futures":
                learn("result", known)
            # An exception holds this frame, and the frame the future that holds the exception: no cycle, as without us.
            self = None

    return resemble(get_and_learn, original)


def _caller() -> Any:
    return sys._getframe(2).f_globals.get("__name__")


def patch_pool(module: Any) -> None:
    """What a pool has run is known to whoever shuts it down, as `with` does at its end."""
    cls, pool = module._WorkItem, module.ThreadPoolExecutor
    run, shutdown = cls.run, pool.shutdown

    def run_and_remember(self: Any, *args: Any) -> None:
        lane = self._tapeproxy_lane
        try:
            run(self, *args)
        finally:
            known = lane.place()
            if known is not None:
                import threading

                runs = threading.current_thread().__dict__.setdefault("_tapeproxy_run", {})
                if len(runs) < _MOST_RUN:
                    runs[known[:3]] = known
            self = None  # see threads.give_lanes

    def shutdown_and_learn(self: Any, wait: bool = True, **options: Any) -> None:
        shutdown(self, wait, **options)
        # An event loop does so at its end, when nothing of interest comes after.
        if wait and sys._getframe(1).f_code.co_name != "_do_shutdown":
            runs: dict[Any, Any] = {}
            for thread in list(self._threads):
                runs.update(thread.__dict__.get("_tapeproxy_run", ()))
            for _, known in sorted(runs.items()):
                learn("join", known)

    cls.run = resemble(run_and_remember, run)
    pool.shutdown = resemble(shutdown_and_learn, shutdown)
