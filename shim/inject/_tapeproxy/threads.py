"""Gives threads and the work items of thread pools their lanes. Knows who starts and who runs, not what they do.

A thread's lane is made where it is started, in the starter's lane. A pool's threads come and go as timing wants, so
theirs are soft, and each work item has a lane of its own, made where it was submitted.
"""

from __future__ import annotations

import _thread

from . import completion, hooks
from .lanes import LANE, Lane, asker, current, enter_thread, soft
from .likeness import resemble, stand_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

POOLS = frozenset(
    (
        "anyio._backends._asyncio",
        "concurrent.futures.process",
        "concurrent.futures.thread",
        "multiprocessing.managers",
        "multiprocessing.pool",
        "multiprocessing.queues",
        "multiprocessing.resource_sharer",
        "trio._core._thread_cache",
    )
)
"""Modules that start threads when they need one more, not when the agent says so."""

_start_new_thread = _thread.start_new_thread


def install() -> None:
    """Watch the ways to start a thread."""
    for name in ("start_new_thread", "start_new"):
        if hasattr(_thread, name):
            setattr(_thread, name, stand_for(start_new_thread, _start_new_thread))
    hooks.on_import("threading", _patch_threading)
    hooks.on_import("concurrent.futures.thread", lambda module: give_lanes(module._WorkItem))
    hooks.on_import("concurrent.futures._base", _patch_futures)


def start_new_thread(_: object, function: Any, args: Any, *rest: Any) -> int:
    if not callable(function) or not isinstance(args, tuple) or rest[1:] or not isinstance((*rest, {})[0], dict):
        return _start_new_thread(function, args, *rest)  # for its error
    lane = current().child("t", getattr(function, "__qualname__", ""))
    return _start_new_thread(_run, (lane, function, args, *rest))


def _run(lane: Lane, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
    enter_thread(lane)
    try:
        function(*args, **(kwargs or {}))
    finally:
        completion.ended(lane)
        lane.close()


def _patch_threading(module: Any) -> None:
    # Its own threads get their lanes in start(); this copy may be ours, made just now.
    if hasattr(module, "_start_new_thread"):
        module._start_new_thread = _start_new_thread
    cls = module.Thread
    start, bootstrap = cls.start, cls._bootstrap_inner

    def start_with_lane(self: Any) -> None:
        if "_tapeproxy_lane" not in self.__dict__:
            pooled = asker(1).f_globals.get("__name__") in POOLS
            name = getattr(self, "_name", "")
            # Past a __setattr__ of the agent's.
            self.__dict__["_tapeproxy_lane"] = soft("e", name) if pooled else current().child("t", name)
        start(self)

    def bootstrap_with_lane(self: Any) -> None:
        lane: Lane | None = self.__dict__.get("_tapeproxy_lane")
        if not lane:  # started in some other way
            bootstrap(self)
            return
        enter_thread(lane)
        _enter_own_context(self, lane)
        try:
            bootstrap(self)
        finally:
            completion.ended(lane)
            lane.close()

    cls.start = resemble(start_with_lane, start)
    cls._bootstrap_inner = resemble(bootstrap_with_lane, bootstrap)


def _enter_own_context(thread: Any, lane: Lane) -> None:
    """Since 3.14 a thread runs in a context of its own, which may be a copy of its starter's."""
    context = getattr(thread, "_context", None)
    if context is not None:
        try:
            context.run(LANE.set, lane)
        except RuntimeError:  # the agent's own context, entered elsewhere
            pass


def give_lanes(cls: Any) -> None:
    """Give each work item of this class a lane when it is made, and enter it while it runs, callbacks included."""
    make, run = cls.__init__, cls.run

    def make_with_lane(self: Any, /, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        parent = LANE.get(None) or current()
        completion.watch(parent)
        self._tapeproxy_lane = parent.child("w")

    def run_with_lane(self: Any, *args: Any) -> Any:
        lane = self.__dict__.get("_tapeproxy_lane")
        if not lane:  # made by somebody who has none
            return run(self, *args)
        token = LANE.set(lane)
        try:
            return run(self, *args)
        finally:
            completion.ended(lane)
            # An exception in the item's future holds the frames below, and they this one: no cycle, as without us.
            self = None
            LANE.reset(token)

    cls.__init__ = resemble(make_with_lane, make)
    cls.run = resemble(run_with_lane, run)


def _patch_futures(module: Any) -> None:
    """as_completed and wait go through sets of futures: by their addresses, if nobody tells them otherwise."""

    def hash_by_name(self: Any) -> int:
        names = self.__dict__
        found: int | None = names.get("_tapeproxy_hash")
        if found is None:
            lane = LANE.get(None) or current()
            # Threads of a pool may share a soft lane's number: equal hashes do no harm.
            found = names["_tapeproxy_hash"] = hash((lane.id, lane.hashed))
            lane.hashed += 1
        return found

    module.Future.__hash__ = hash_by_name
