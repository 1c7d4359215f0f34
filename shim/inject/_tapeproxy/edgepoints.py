"""Which modules of the standard library have places where lanes meet, and what watches each. Loads what is needed."""

from __future__ import annotations

import os
import sys

from . import hooks, processes
from .likeness import stand_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_POINTS = (
    ("threading", "threadedges", "patch_threading"),
    ("queue", "queueedges", "patch_queue"),
    ("concurrent.futures._base", "threadedges", "patch_futures"),
    ("concurrent.futures.thread", "threadedges", "patch_pool"),
    ("asyncio.base_events", "taskedges", "patch_loop"),
    ("uvloop", "taskedges", "patch_loop"),
    ("asyncio.tasks", "taskedges", "patch_tasks"),
    ("asyncio.taskgroups", "taskedges", "patch_groups"),
    ("asyncio.futures", "taskedges", "patch_futures"),
    ("asyncio.queues", "taskedges", "patch_queues"),
    ("asyncio.locks", "taskedges", "patch_locks"),
    ("anyio._backends._asyncio", "taskedges", "patch_anyio"),
    ("trio._core._run", "taskedges", "patch_trio"),
    ("subprocess", "processedges", "patch_subprocess"),
    ("asyncio.subprocess", "processedges", "patch_asyncio"),
    ("multiprocessing.process", "processedges", "patch_process"),
    ("multiprocessing.queues", "processedges", "patch_queues"),
    ("multiprocessing.pool", "processedges", "patch_pool"),
    ("concurrent.futures.process", "processedges", "patch_executor"),
    ("http.server", "serveredges", "patch_http_server"),
    ("uvicorn.protocols.http.h11_impl", "serveredges", "patch_uvicorn"),
    ("uvicorn.protocols.http.httptools_impl", "serveredges", "patch_uvicorn"),
    ("aiohttp.web_protocol", "serveredges", "patch_aiohttp"),
)


def install() -> None:
    """Watch each of the modules as soon as it is imported."""
    for module, part, function in _POINTS:
        hooks.on_import(module, _patcher(part, function))
    if hasattr(os, "fork"):
        for name, make in (("fork", _fork), ("waitpid", _waitpid)):
            original = getattr(os, name)
            replacement = stand_for(make(original), original)
            for owner in (os, sys.modules[original.__module__]):
                setattr(owner, name, replacement)


def _fork(original: Callable[[], int]) -> Callable[..., int]:
    def fork(_: object) -> int:
        pid = original()
        child = processes.last_begun()
        if pid and child is not None:
            processes.forked[pid] = child
        return pid

    return fork


def _waitpid(original: Callable[[int, int], tuple[int, int]]) -> Callable[..., tuple[int, int]]:
    def waitpid(_: object, pid: int, options: int, /) -> tuple[int, int]:
        found = original(pid, options)
        child = processes.forked.pop(found[0], None)
        if child is not None:
            from . import edges

            edges.learn_all("exit", child)
        return found

    return waitpid


def _patcher(part: str, function: str) -> Any:
    def patch(module: Any) -> None:
        from importlib import import_module

        getattr(import_module(f"{__package__}.{part}"), function)(module)

    return patch
