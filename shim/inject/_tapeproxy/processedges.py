"""Where processes learn of each other: waiting for one, queues of multiprocessing, results of pools.

Knows how multiprocessing hands things over. A process begins with what its maker knew (processes.begin_lane); who sees
its end knows all that it did.
"""

from __future__ import annotations

from . import processes
from .edges import all_of, learn, learn_all, place
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CHILD = "_tapeproxy_child"
_FROM = "_tapeproxy_from"


class Sent:
    """An item on its way through a queue, with what its sender knew. Pickles by reference to this module."""

    __slots__ = ("item", "known")

    def __init__(self, known: Any, item: Any) -> None:
        self.known = known
        self.item = item

    def __reduce__(self) -> tuple[Any, ...]:
        return Sent, (self.known, self.item)


def patch_subprocess(module: Any) -> None:
    """Popen, and so run, call, check_output."""
    cls = module.Popen
    execute = cls._execute_child

    def execute_child(self: Any, *args: Any) -> None:
        processes.last_begun()
        execute(self, *args)
        self.__dict__[_CHILD] = processes.last_begun()

    cls._execute_child = resemble(execute_child, execute)
    cls.wait = _ending(cls.wait, lambda self: self.returncode is not None)
    cls.poll = _ending(cls.poll, lambda self: self.returncode is not None)


def _ending(original: Callable[..., Any], over: Callable[[Any], bool]) -> Callable[..., Any]:
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        child = self.__dict__.get(_CHILD)
        if child is not None and over(self):
            learn_all("exit", child)
        return found

    return resemble(wait, original)


def patch_asyncio(module: Any) -> None:
    """asyncio's Process: its transport has the Popen."""
    cls = module.Process
    wait = cls.wait

    async def wait_and_learn(self: Any) -> Any:
        found = await wait(self)
        popen = self._transport.get_extra_info("subprocess")
        child = getattr(popen, "__dict__", {}).get(_CHILD)
        if child is not None:
            learn_all("exit", child)
        return found

    cls.wait = resemble(wait_and_learn, wait)


def patch_process(module: Any) -> None:
    """multiprocessing's Process, however it is started."""
    cls = module.BaseProcess
    start = cls.start

    def start_and_remember(self: Any) -> None:
        processes.last_begun()
        start(self)
        # A fork is known by its process, for its maker has its own way to it.
        child = processes.last_begun() or processes.forked.get(self.pid)
        if child is not None:
            self.__dict__[_CHILD] = child

    cls.start = resemble(start_and_remember, start)
    cls.join = _ending(cls.join, lambda self: self._popen is not None and self._popen.returncode is not None)


def patch_queues(module: Any) -> None:
    """Queue and JoinableQueue: the item travels with what its sender knew."""
    for cls in (module.Queue, module.JoinableQueue):
        if "put" in cls.__dict__:
            cls.put = _putting(cls.put)
    get = module.Queue.get

    def get_and_learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        item = get(self, *args, **kwargs)
        if type(item) is Sent:
            learn("get", item.known)
            item = item.item
        return item

    module.Queue.get = resemble(get_and_learn, get)


def _putting(original: Callable[..., None]) -> Callable[..., None]:
    def put(self: Any, obj: Any, *args: Any, **kwargs: Any) -> None:
        known = place()
        if known is not None:
            obj = Sent((*known[:3], None), obj)
        original(self, obj, *args, **kwargs)

    return resemble(put, original)


def patch_executor(module: Any) -> None:
    """ProcessPoolExecutor: whoever gets a result knows what was done for it."""
    cls = module._WorkItem
    make = cls.__init__

    def make_with_place(self: Any, future: Any, fn: Any, args: Any, kwargs: Any) -> None:
        make(self, future, fn, args, kwargs)
        id = getattr(self.fn, "id", None)
        if id is not None:
            future.__dict__[_FROM] = all_of(id)

    cls.__init__ = resemble(make_with_place, make)


def patch_pool(module: Any) -> None:
    """multiprocessing's Pool: the same of its results. workers.py says which lane each is of."""
    get = module.ApplyResult.get

    def get_and_learn(self: Any, timeout: float | None = None) -> Any:
        try:
            return get(self, timeout)
        finally:
            lane = self.__dict__.get(processes.RESULT)
            if lane is not None and self.ready():
                learn_all("result", lane)
            self = None

    module.ApplyResult.get = resemble(get_and_learn, get)
    for cls in (module.IMapIterator, module.IMapUnorderedIterator):
        if "next" in cls.__dict__:
            cls.next = cls.__next__ = _iterating(cls.next)


def _iterating(original: Callable[..., Any]) -> Callable[..., Any]:
    def next(self: Any, timeout: float | None = None) -> Any:
        names = self.__dict__
        batch = names.get(processes.RESULT)
        try:
            found = original(self, timeout)
        except StopIteration:
            if batch is not None:
                learn_all("result", batch)
            raise
        number = names["_tapeproxy_next"] = names.get("_tapeproxy_next", -1) + 1
        if batch is not None and type(self).__name__ == "IMapIterator":
            learn_all("result", f"{batch}/w{number}")
        return found

    return resemble(next, original)
