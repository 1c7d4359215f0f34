"""Processes and work items of multiprocessing and concurrent.futures: their lanes travel with them.

Knows how both hand work to other processes. A spawned process is told its lane; a work item carries one, made where it
was submitted, because which worker takes it is a matter of timing.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from . import hooks, lanes
from .lanes import LANE, Lane, current
from .likeness import resemble
from .processes import RESULT, new_lane, say_hello, spawning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_LANE = "_tapeproxy_lane"


class Item:
    """A function to call in a lane; pickles with the lane's id."""

    def __init__(self, lane: Lane, name: str, function: Callable[..., Any]) -> None:
        self.id = lane.id
        self.kind = lane.kind
        self.name = name
        self.origin = lane.origin and (*lane.origin[:3], None)
        self.function = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        lane = Lane(self.id, None, self.kind, self.name)
        lane.origin = self.origin
        return lanes.run_in(lane, self.function, *args, **kwargs)


def item(function: Callable[..., Any]) -> Item:
    """The function, to be called in a lane made now."""
    lane = (LANE.get(None) or current()).child("w", getattr(function, "__qualname__", ""))
    return Item(lane, lane.name, function)


def install() -> None:
    """Wait for the modules that start workers."""
    hooks.on_import("multiprocessing.spawn", _patch_spawn)
    hooks.on_import("multiprocessing.pool", _patch_pool)
    hooks.on_import("concurrent.futures.process", _patch_executor)


def _patch_spawn(module: Any) -> None:
    pack, prepare = module.get_preparation_data, module.prepare

    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = pack(name)
        asking = sys._getframe(1).f_globals.get("__name__")
        if asking != "multiprocessing.forkserver":  # the server itself, which is nobody's child
            lane = new_lane("s", name)
            data[_LANE] = lane.id, lane.parent
            if asking == "multiprocessing.popen_spawn_posix":  # which executes a program next
                spawning[get_ident()] = lane
        return data

    def prepare_with_lane(data: dict[str, Any]) -> None:
        id, parent = data.pop(_LANE, (None, None))
        if id is not None and id != lanes.root().id:  # a child of the fork server, which knew nothing of this
            lanes.become(id, parent, "s", data.get("name", ""))
            say_hello()
        prepare(data)

    module.get_preparation_data = resemble(get_preparation_data, pack)
    module.prepare = resemble(prepare_with_lane, prepare)


def _patch_pool(module: Any) -> None:
    cls = module.Pool
    apply, generate = cls.apply_async, cls._guarded_task_generation

    def apply_async(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        made = item(func)
        result = apply(self, made, *args, **kwargs)
        result.__dict__[RESULT] = made.id
        return result

    def guarded_task_generation(self: Any, result_job: Any, func: Callable[..., Any], iterable: Any) -> Any:
        batch = (LANE.get(None) or current()).child("w", getattr(func, "__qualname__", ""))
        result = self._cache.get(result_job)
        if result is not None:
            result.__dict__[RESULT] = batch.id
        return _in_lanes(batch, func, generate(self, result_job, func, iterable))

    cls.apply_async = resemble(apply_async, apply)
    cls._guarded_task_generation = resemble(guarded_task_generation, generate)


def _in_lanes(batch: Lane, func: Callable[..., Any], tasks: Iterator[Any]) -> Iterator[Any]:
    """The tasks of one map(), each in a lane below the batch's. A task that reports a failure stays as it is."""
    for job, number, function, args, kwargs in tasks:
        if function is func:
            lane = batch.child("w")
            function = Item(lane, batch.name, func)
        yield job, number, function, args, kwargs


def _patch_executor(module: Any) -> None:
    cls = module._WorkItem
    make = cls.__init__

    def make_with_lane(self: Any, future: Any, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        make(self, future, item(fn), args, kwargs)

    cls.__init__ = resemble(make_with_lane, make)
