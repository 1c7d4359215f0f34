"""Which modules of the standard library have places where lanes meet, and what watches each. Loads what is needed."""

from __future__ import annotations

from . import hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_POINTS = (
    ("threading", "threadedges", "patch_threading"),
    ("queue", "threadedges", "patch_queue"),
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


def _patcher(part: str, function: str) -> Any:
    def patch(module: Any) -> None:
        from importlib import import_module

        getattr(import_module(f"{__package__}.{part}"), function)(module)

    return patch
