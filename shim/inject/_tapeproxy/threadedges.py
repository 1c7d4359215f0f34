"""Where threads learn of each other: join, futures, queues, events. Knows how each hands things over.

A pool's thread has a soft lane, which learns nothing; what it has run, whoever joins it learns of.
"""

from __future__ import annotations

import sys

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


def _known(futures: Any) -> list[Any]:
    return [found for one in futures if (found := one.__dict__.get(_FROM)) is not None]


def _setting(original: Callable[..., None]) -> Callable[..., None]:
    def set_and_let_know(self: Any, value: Any) -> None:
        # Of a pool of processes' item the manager's thread says so, and what is known is on the future already.
        lane = LANE.get(None) or current()
        absorb(lane)
        known = lane.place()
        if known is not None:
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


def patch_queue(module: Any) -> None:
    """Whoever gets an item knows what was known to the one who put it."""
    cls = module.Queue
    put, get = cls.put, cls.get

    def put_and_let_know(self: Any, item: Any, block: bool = True, timeout: float | None = None) -> None:
        known = (LANE.get(None) or current()).place()
        if known is None:
            put(self, item, block, timeout)
            return
        entry = remember(self, item, known)  # before it can be got
        try:
            put(self, item, block, timeout)
        except BaseException:
            self.__dict__[_FROM][id(item)].remove(entry)
            raise

    def get_and_learn(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        item = get(self, block, timeout)
        senders = self.__dict__.get(_FROM)
        if senders:
            take(senders, item)
        return item

    cls.put, cls.get = resemble(put_and_let_know, put), resemble(get_and_learn, get)


class _Senders(dict):  # type: ignore[type-arg]  # 3.9's, at run time
    """Of a queue's items, by their ids: each with what its sender knew."""

    limit = 1000


def remember(queue: Any, item: Any, known: Any) -> tuple[Any, Any]:
    """The item, put by one who knows so much, is about to go into a queue."""
    entry = item, known  # with the item, so that its id is no other's until it is got
    senders = queue.__dict__.get(_FROM)
    if senders is None:
        senders = queue.__dict__.setdefault(_FROM, _Senders())
    senders.setdefault(id(item), []).append(entry)
    if len(senders) > senders.limit:
        _tidy(senders, queue)
    return entry


def take(senders: Any, item: Any) -> None:
    """The item has come out of a queue: learn what its sender knew."""
    found = senders.get(id(item))
    if found:
        _, known = found.pop(0)
        learn("get", known)


def _tidy(senders: _Senders, queue: Any) -> None:
    """Forget items that are in the queue no more; those that left it past `get` would stay for ever."""
    for key in [key for key, entries in list(senders.items()) if not entries]:
        # A list that is empty may be about to get an entry, in another thread: of the same object, which is rare.
        senders.pop(key, None)
    if len(senders) > 2 * queue.qsize() + 1000:
        senders.clear()
    senders.limit = 2 * len(senders) + 1000
