"""Gives asyncio's and trio's tasks their lanes, and keeps connecting from taking numbers from the agent's own tasks.

Knows where tasks are made. How many connections a client opens depends on timing, and each may start tasks and look
names up in threads; so connecting happens in a lane of its own. How often a loop waits for whichever comes first
depends on timing, too, and each round may make a task of a wait; so these are numbered apart.
"""

from __future__ import annotations

import sys

from . import hooks, randomness, settings
from .lanes import LANE, Lane, current, soft
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SDKS = ("anthropic", "cerebras.cloud.sdk", "groq", "openai", "together")
_GENERATOR = 0x20  # inspect.CO_GENERATOR
_WAITS = ("asyncio.locks", "asyncio.queues")
_WRAPPED = ("Condition.wait", "Event.wait", "Queue.join", "sleep")
_WRAPPERS = ("asyncio.tasks", "_tapeproxy.sleeping", "_tapeproxy.taskedges")


def install() -> None:
    """Wait for the event loops."""
    hooks.on_import("asyncio.base_events", lambda module: _patch_loop(module.BaseEventLoop))
    hooks.on_import("uvloop", lambda module: _patch_loop(module.Loop))
    hooks.on_import("asyncio.tasks", _patch_as_completed)
    hooks.on_import("trio._core._run", _patch_trio)
    for sdk in _SDKS:
        hooks.on_import(sdk + "._base_client", _patch_platform)
    hooks.on_import("anyio._core._sockets", lambda module: _set_apart(module, "connect_tcp"))
    hooks.on_import("aiohttp.connector", lambda module: _set_apart(module.BaseConnector, "connect"))
    hooks.on_import("trio._highlevel_open_tcp_stream", lambda module: _set_apart(module, "open_tcp_stream"))


def _patch_loop(cls: Any) -> None:
    cls.create_task = _with_lane(cls.create_task)
    for name in ("create_connection", "getaddrinfo"):
        _set_apart(cls, name)


def _with_lane(create: Callable[..., Any]) -> Callable[..., Any]:
    def create_task(self: Any, coro: Any, **kwargs: Any) -> Any:
        parent = LANE.get(None) or current()
        name = getattr(coro, "__qualname__", None)
        if name is None and type(coro).__name__ == "async_generator_athrow":
            lane = soft("a")  # the garbage collector closes a generator, at a moment of its own
        else:
            kind = "y" if settings.APART and _only_waits(coro, name) else "a"
            lane = parent.child(kind, kwargs.get("name") or name or "")
        if lane.seeded is not None:
            _go_on(parent, lane)
        context = kwargs.get("context")
        if context is None:
            # The task copies the current context, and an eager one runs at once.
            token = LANE.set(lane)
            try:
                return _known(create(self, coro, **kwargs), lane)
            finally:
                LANE.reset(token)
        try:
            context.run(LANE.set, lane)
        except RuntimeError:  # the context we are in: the task shares our lane
            return create(self, coro, **kwargs)
        return _known(create(self, coro, **kwargs), lane)

    return resemble(create_task, create)


def _only_waits(coro: Any, name: Any) -> bool:
    """Whether a coroutine is one of asyncio's own that wait for others (`event.wait()`, `queue.get()`, `sleep()`)."""
    frame = getattr(coro, "cr_frame", None)
    module = frame.f_globals.get("__name__") if frame is not None else None
    return module in _WAITS or (name in _WRAPPED and module in _WRAPPERS)


def _known(task: Any, lane: Lane) -> Any:
    """Have whoever awaits the task find its lane."""
    if settings.EDGES:
        try:
            task._tapeproxy_lane = lane
        except AttributeError:  # of a factory of the agent's
            pass
    return task


def _go_on(parent: Lane, lane: Lane) -> None:
    """random.seed(x), then asyncio.run(main()): the caller waits, and main goes on with its sequence."""
    frame: Any = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            return
        module = frame.f_globals.get("__name__")
        if module == "asyncio.runners" or frame.f_code.co_name == "run_until_complete":
            randomness.share(parent, lane)
            return
        frame = frame.f_back


def _set_apart(owner: Any, name: str) -> None:
    """Run this coroutine function of a module or class in a lane of its own."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, _apart(original))


def _apart(original: Callable[..., Any]) -> Callable[..., Any]:
    async def apart(*args: Any, **kwargs: Any) -> Any:
        token = LANE.set((LANE.get(None) or current()).child("n"))
        try:
            return await original(*args, **kwargs)
        finally:
            LANE.reset(token)

    return resemble(apart, original)


def _patch_platform(module: Any) -> None:
    """An SDK looks its machine up in a thread for each request that comes before it is known: how often is chance."""
    original, platform = getattr(module, "asyncify", None), getattr(module, "get_platform", None)
    if original is None or platform is None:  # an older one, which does without the thread
        return

    def asyncify(function: Callable[..., Any]) -> Any:
        made = original(function)
        return _apart(made) if function is platform else made

    module.asyncify = resemble(asyncify, original)


def _patch_as_completed(module: Any) -> None:
    """Make its tasks in the order of its argument; asyncio goes by the addresses of the coroutines, in a set."""
    original = module.as_completed

    def in_order(fs: Any, options: dict[str, Any]) -> Any:
        if module.coroutines.iscoroutine(fs) or module.futures.isfuture(fs):
            return fs  # for its error
        loop = options.get("loop") or module.events.get_event_loop()
        return [module.ensure_future(one, loop=loop) for one in dict.fromkeys(fs)]

    def generate(fs: Any, **options: Any) -> Any:
        yield from original(in_order(fs, options), **options)

    def as_completed(fs: Any, **options: Any) -> Any:
        return original(in_order(fs, options), **options)

    lazy = original.__code__.co_flags & _GENERATOR  # before 3.13: nothing is started before the first next()
    module.as_completed = resemble(generate if lazy else as_completed, original)


def _patch_trio(module: Any) -> None:
    cls = module.Runner
    spawn = cls.spawn_impl

    def spawn_impl(
        self: Any, async_fn: Any, args: Any, nursery: Any, name: Any, *, system_task: bool = False, context: Any = None
    ) -> Any:
        if system_task or context is not None:
            return spawn(self, async_fn, args, nursery, name, system_task=system_task, context=context)
        token = LANE.set((LANE.get(None) or current()).child("a", getattr(async_fn, "__qualname__", "")))
        try:
            return spawn(self, async_fn, args, nursery, name)
        finally:
            LANE.reset(token)

    cls.spawn_impl = resemble(spawn_impl, spawn)
