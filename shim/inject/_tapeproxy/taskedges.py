"""Where tasks of an event loop learn of each other: await, gather, wait, groups, queues, events.

A task that is awaited is seen in its own `__await__`, so the loop's tasks are of a subclass that has one; what a lane
learns is so told where it goes on, and not where the other one ended, which is chance.
"""

from __future__ import annotations

import sys

from . import settings
from .edges import absorb_one, learn, place
from .lanes import LANE, current
from .likeness import resemble
from .queueedges import learn_done, remember, take, telling_done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

_FROM = "_tapeproxy_from"
_LANE = "_tapeproxy_lane"
_SOURCE = "_tapeproxy_source"


def patch_tasks(module: Any) -> None:
    """Tasks, gather, wait and wait_for."""
    plain = module.Task
    module.Task = _awaited(plain)
    module.Task.set_name = resemble(_naming(plain.set_name), plain.set_name)
    _seen.append(module.Task)
    eager = getattr(module, "create_eager_task_factory", None)
    if eager is not None:
        module.eager_task_factory = eager(module.Task)
    gathering = module._GatheringFuture
    gathering.__await__ = gathering.__iter__ = _seen_awaiting(gathering.__await__)
    wait, wait_for = module.wait, module.wait_for

    async def wait_and_learn(fs: Any, **options: Any) -> Any:
        found = await wait(fs, **options)
        for known in sorted(known for one in found[0] for known in _places(one)):
            learn("await", known)
        return found

    async def wait_for_and_learn(fut: Any, timeout: Any, **options: Any) -> Any:
        if timeout is not None and module.coroutines.iscoroutine(fut) and sys.version_info < (3, 12):
            fut = module.ensure_future(fut, **options)  # as it would itself
        try:
            return await wait_for(fut, timeout, **options)
        finally:
            if module.futures.isfuture(fut):
                _learn_done(fut)

    module.wait, module.wait_for = resemble(wait_and_learn, wait), resemble(wait_for_and_learn, wait_for)


_seen: list[Any] = []  # the subclass of Task


def _awaited(plain: Any) -> Any:
    """A subclass, in its parent's clothes, that sees who awaits it."""
    wait = _seen_awaiting(plain.__await__)
    names = {"__module__": plain.__module__, "__qualname__": plain.__qualname__, "__doc__": plain.__doc__}
    return type(plain)(plain.__name__, (plain,), {**names, "__slots__": (), "__await__": wait, "__iter__": wait})


def _seen_awaiting(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Any]:
    def wait(self: Any) -> Generator[Any, Any, Any]:
        try:
            return (yield from original(self))
        except BaseException as error:
            # Agents tell models of tracebacks, which would else have a line and a path of ours. Before 3.11 they have.
            trace = error.__traceback__
            if trace is not None and sys.version_info >= (3, 11):
                error.__traceback__ = trace.tb_next
            del trace
            raise
        finally:
            _learn_done(self)

    return wait


def _naming(original: Callable[..., None]) -> Callable[..., None]:
    """Up to 3.12 a task gets its name after it was made."""

    def set_name(self: Any, value: object, /) -> None:
        original(self, value)
        lane = getattr(self, _LANE, None)
        if lane is not None and not lane.told:
            lane.name = str(value)

    return set_name


def _learn_done(future: Any) -> None:
    """The current lane knows what became of the future, if it is done."""
    if future.done():
        for known in _places(future):
            learn("await", known)


def _places(future: Any) -> Iterator[Any]:
    """What is known to whoever sees that the future is done."""
    lane = getattr(future, _LANE, None)
    if lane is not None:
        known = lane.place()
        if known is not None:
            yield known
        return
    source = getattr(future, _SOURCE, None)  # of a pool
    if source is not None and _FROM in source.__dict__:
        yield source.__dict__[_FROM]
    for child in getattr(future, "_children", ()):  # of gather
        if child.done():
            yield from _places(child)


def patch_futures(module: Any) -> None:
    """Futures of a pool that a task awaits (run_in_executor, to_thread), and of a task that a thread waits for."""
    wrap = module.wrap_future
    linked = _awaited(module.Future)

    def wrap_future(future: Any, *, loop: Any = None) -> Any:
        if module.isfuture(future) or loop is None:
            return wrap(future, loop=loop)
        made = linked(loop=loop)
        setattr(made, _SOURCE, future)
        module._chain_future(future, made)
        return made

    module.wrap_future = resemble(wrap_future, wrap)
    if settings.MORE_EDGES:
        _patch_threadsafe(module)


def _patch_threadsafe(module: Any) -> None:
    """What asyncio copies to the future of a thread, for run_coroutine_threadsafe."""
    copy = module._set_concurrent_future_state

    def copy_and_let_know(concurrent: Any, source: Any) -> None:
        for known in _places(source):  # one: run_coroutine_threadsafe made a task
            concurrent.__dict__[_FROM] = known
        copy(concurrent, source)

    module._set_concurrent_future_state = resemble(copy_and_let_know, copy)


def patch_groups(module: Any) -> None:
    """Who leaves a group knows what its tasks did."""
    _patch_group(module.TaskGroup, lambda task: getattr(task, _LANE, None))


def patch_anyio(module: Any) -> None:
    """The same of anyio's, and what its threads do."""
    _patch_group(module.TaskGroup, lambda task: getattr(task, _LANE, None))
    cls = module.AsyncIOBackend
    original = cls.run_sync_in_worker_thread.__func__

    async def run_sync_in_worker_thread(cls: Any, *args: Any, **kwargs: Any) -> Any:
        lane = LANE.get(None) or current()
        id = f"{lane.id}/c{lane.kids.get('c', 0)}"  # of the context that it copies
        try:
            return await original(cls, *args, **kwargs)
        finally:
            absorb_one(id, lane)

    cls.run_sync_in_worker_thread = classmethod(resemble(run_sync_in_worker_thread, original))


def patch_trio(module: Any) -> None:
    """The same of trio's nurseries."""
    _patch_group(module.Nursery, lambda task: task.context.get(LANE), "_children", "_nested_child_finished")


class _Remembering(set):  # type: ignore[type-arg]  # 3.9's, at run time
    """A group's tasks, and the lanes of all that ever were in it."""

    def __init__(self, tasks: Any, lane_of: Callable[[Any], Any]) -> None:
        super().__init__(tasks)
        self.lanes: list[Any] = []
        self.lane_of = lane_of

    def add(self, task: Any) -> None:
        """Add a task."""
        super().add(task)
        lane = self.lane_of(task)
        if lane is not None:
            self.lanes.append(lane)


def _patch_group(cls: Any, lane_of: Callable[[Any], Any], tasks: str = "_tasks", leave: str = "__aexit__") -> None:
    make, original = cls.__init__, getattr(cls, leave)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        setattr(self, tasks, _Remembering(getattr(self, tasks), lane_of))

    async def leave_and_learn(self: Any, *args: Any) -> Any:
        known = getattr(self, tasks)
        try:
            return await original(self, *args)
        finally:
            if isinstance(known, _Remembering):
                for lane in known.lanes:
                    learn("await", lane.place())

    cls.__init__ = resemble(init, make)
    setattr(cls, leave, resemble(leave_and_learn, original))


def patch_loop(module: Any) -> None:
    """Who runs a loop until something is complete knows what came of it."""
    cls = getattr(module, "BaseEventLoop", None) or module.Loop
    run = cls.run_until_complete

    def run_until_complete(self: Any, future: Any) -> Any:
        asyncio = sys.modules["asyncio"]
        made = not asyncio.isfuture(future) and asyncio.iscoroutine(future)
        if made:  # as it would itself
            future = asyncio.ensure_future(future, loop=self)
            future._log_destroy_pending = False
        try:
            return run(self, future)
        except BaseException:
            if made and future.done() and not future.cancelled():
                future.exception()  # it is told already
            raise
        finally:
            if asyncio.isfuture(future):
                _learn_done(future)

    cls.run_until_complete = resemble(run_until_complete, run)


def patch_queues(module: Any) -> None:
    """Whoever gets an item knows what was known to the one who put it; whoever joins, to all who were done with one."""
    cls = module.Queue
    if settings.MORE_EDGES:
        _patch_join(cls)
    put, get = cls.put_nowait, cls.get_nowait

    def put_and_let_know(self: Any, item: Any) -> None:
        put(self, item)
        known = (LANE.get(None) or current()).place()
        if known is not None:
            remember(self, item, known)

    def get_and_learn(self: Any) -> Any:
        item = get(self)
        senders = self.__dict__.get(_FROM)
        if senders:
            take(senders, item)
        if _seen and type(item) is _seen[0]:
            _learn_done(item)  # as_completed
        return item

    cls.put_nowait, cls.get_nowait = resemble(put_and_let_know, put), resemble(get_and_learn, get)


def _patch_join(cls: Any) -> None:
    cls.task_done = telling_done(cls.task_done)
    join = cls.join

    async def join_and_learn(self: Any) -> None:
        await join(self)
        learn_done(self)

    cls.join = resemble(join_and_learn, join)


def patch_locks(module: Any) -> None:
    """Who sees an event set, or is notified, knows what was known to the one who did it."""
    for cls, tell in ((module.Event, ("set",)), (module.Condition, ("notify",))):
        for name in tell:
            setattr(cls, name, _telling(getattr(cls, name)))
        cls.wait = _hearing(cls.wait)


def _telling(original: Callable[..., None]) -> Callable[..., None]:
    def tell(self: Any, *args: Any) -> None:
        known = place()
        if known is not None:
            self.__dict__[_FROM] = known
        original(self, *args)

    return resemble(tell, original)


def _hearing(original: Callable[..., Any]) -> Callable[..., Any]:
    async def wait(self: Any) -> Any:
        found = await original(self)
        if _FROM in self.__dict__:
            learn("event", self.__dict__[_FROM])
        return found

    return resemble(wait, original)
