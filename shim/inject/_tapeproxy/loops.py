"""Event loops in a replay: a loop that waits for nothing but its timers has its wait cut short. Never in a recording.

Only the wait itself is touched, and the clock that timers are measured on: the loop's own code decides what runs when.
A loop with a socket or a pipe to listen to waits really, so an answer is never overtaken by its own timeout.
"""

from __future__ import annotations

import sys

from . import hooks, settings, tapedtime, timeline
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_TRIO_FOREVER = 86_400  # seconds; what trio waits when it has no deadline
_offset: int | None = None  # ns from the timeline to the loops' clocks
_aiohttp_pools: Any = None  # a WeakSet of connectors


def install() -> None:
    """Cut asyncio's and trio's waits short, in loops made from now on."""
    hooks.on_import("asyncio.base_events", _patch_clock)
    hooks.on_import("asyncio.selector_events", _patch_selecting)
    hooks.on_import("aiohttp.connector", _patch_pools)
    hooks.on_import("trio._core._run", _patch_trio_clock)
    hooks.on_import("trio._core._io_epoll", _patch_trio_waiting)
    hooks.on_import("trio._core._io_kqueue", _patch_trio_waiting)
    hooks.on_import("uvloop", _patch_uvloop)


def _patch_clock(module: ModuleType) -> None:
    def time(_: Any) -> float:
        return loop_time()

    module.BaseEventLoop.time = resemble(time, module.BaseEventLoop.time)


def loop_time() -> float:
    """What a loop's time() returns."""
    return (timeline.now() + _loop_offset()) / 1e9


def _loop_offset() -> int:
    """From the timeline to the loops' clocks, which start where the agent's monotonic clock stands."""
    global _offset
    if _offset is None:
        _offset = _instant() - settings.ORIGIN - timeline.now()
    return _offset


def _instant() -> int:
    if settings.SKIP:
        from . import skippedtime

        return skippedtime.read()
    return tapedtime.instant()


def _patch_selecting(module: ModuleType) -> None:
    original = module.BaseSelectorEventLoop.__init__

    def init(self: Any, selector: Any = None) -> None:
        original(self, selector)
        if hasattr(self._selector, "__dict__"):  # one of the agent's own making may have no room; it waits really
            self._selector.select = _cut_short(self, self._selector)

    module.BaseSelectorEventLoop.__init__ = resemble(init, original)


def _cut_short(loop: Any, selector: Any) -> Callable[..., Any]:
    poll = selector.select

    def select(timeout: float | None = None) -> Any:
        if (timeout is not None and timeout <= 0) or _listens(loop, selector):
            return poll(timeout)
        return timeline.wait(_end(timeout), poll, lambda: bool(loop._ready))

    return select


def _end(timeout: float | None) -> float:
    return timeline.FOREVER if timeout is None else timeline.now() + int(timeout * 1e9)


def _listens(loop: Any, selector: Any) -> bool:
    """Whether the loop waits for anything besides its timers and calls from other threads."""
    own = loop._ssock.fileno() if loop._ssock is not None else -1
    return any(key.fd != own and not _is_pooled(key.data) for key in list(selector.get_map().values()))


def _is_pooled(handles: Any) -> bool:
    """Whether these handles only keep a connection of aiohttp's alive between two requests."""
    if not _aiohttp_pools or handles[1] is not None:
        return False
    transport: Any = getattr(handles[0]._callback, "__self__", None)
    protocol = transport.get_protocol() if hasattr(transport, "get_protocol") else None
    protocol = getattr(protocol, "_app_protocol", protocol)  # behind TLS
    return any(
        protocol is entry[0] for pool in list(_aiohttp_pools) for entries in pool._conns.values() for entry in entries
    )


def _patch_pools(module: ModuleType) -> None:
    global _aiohttp_pools
    from weakref import WeakSet

    pools = _aiohttp_pools = WeakSet()
    original = module.BaseConnector.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        pools.add(self)

    module.BaseConnector.__init__ = resemble(init, original)


def _patch_uvloop(module: ModuleType) -> None:
    from . import uvtimers

    uvtimers.patch(module)


def _patch_trio_clock(module: ModuleType) -> None:
    original = module.SystemClock.current_time

    def current_time(self: Any) -> float:
        start: float = self.offset
        return start + timeline.now() / 1e9

    module.SystemClock.current_time = resemble(current_time, original)


def _patch_trio_waiting(module: ModuleType) -> None:
    for name in ("EpollIOManager", "KqueueIOManager"):
        if hasattr(module, name):
            _patch_get_events(getattr(module, name))


def _patch_get_events(manager: Any) -> None:
    original = manager.get_events

    def get_events(self: Any, timeout: float) -> Any:
        if timeout <= 0 or _trio_listens(self):
            return original(self, timeout)
        end = _end(None if timeout >= _TRIO_FOREVER else timeout)
        calls = sys.modules["trio._core._run"].GLOBAL_RUN_CONTEXT.runner.entry_queue
        return timeline.wait(
            end,
            lambda seconds: original(self, timeout if seconds is None else seconds),
            lambda: bool(calls.queue or calls.idempotent_queue),
        )

    manager.get_events = resemble(get_events, original)


def _trio_listens(manager: Any) -> bool:
    """Whether a task waits for input or output, or the clock isn't the one we can leap."""
    run: Any = sys.modules["trio._core._run"]
    runner = getattr(run.GLOBAL_RUN_CONTEXT, "runner", None)
    if runner is None or type(runner.clock) is not run.SystemClock:
        return True
    own = runner.entry_queue.wakeup.wakeup_sock.fileno()
    for key, waiters in list(manager._registered.items()):
        fd = key[0] if isinstance(key, tuple) else key
        if fd != own and (getattr(waiters, "read_task", True) or getattr(waiters, "write_task", True)):
            return True
    return False
