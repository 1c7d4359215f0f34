"""Where threads learn of each other by queues: who gets an item, who waits until all are done with.

Knows how `queue` hands things over; taskedges has the same of asyncio's.
"""

from __future__ import annotations

from . import settings
from .edges import learn, place
from .lanes import LANE, current
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FROM = "_tapeproxy_from"
_DONE = "_tapeproxy_done"
_MOST_DONE = 10_000
"""Lanes that a queue remembers of those who were done with an item of it."""


def patch_queue(module: Any) -> None:
    """Whoever gets an item knows what was known to the one who put it; whoever joins, to all who were done with one."""
    _patch_items(module.Queue)
    if not settings.MORE_EDGES:
        return
    _patch_join(module.Queue)
    simple = module.SimpleQueue
    names = {"__module__": simple.__module__, "__qualname__": simple.__qualname__, "__doc__": simple.__doc__}
    module.SimpleQueue = _patch_simple(type(simple)(simple.__name__, (simple,), names))


def _patch_items(cls: Any) -> None:
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


def _patch_simple(cls: Any) -> Any:
    """A subclass of SimpleQueue, whose `put_nowait` and `get_nowait` are not made of the other two."""
    _patch_items(cls)
    put, get = cls.put, cls.get

    def put_nowait(self: Any, item: Any) -> None:
        put(self, item, False)

    def get_nowait(self: Any) -> Any:
        return get(self, False)

    cls.put_nowait, cls.get_nowait = resemble(put_nowait, cls.put_nowait), resemble(get_nowait, cls.get_nowait)
    return cls


def _patch_join(cls: Any) -> None:
    cls.task_done = telling_done(cls.task_done)
    join = cls.join

    def join_and_learn(self: Any) -> None:
        join(self)
        learn_done(self)

    cls.join = resemble(join_and_learn, join)


def telling_done(original: Callable[[Any], None]) -> Callable[..., Any]:
    """A queue's `task_done` that has those who join know what its caller knows."""

    def task_done(self: Any) -> None:
        known = place()
        if known is not None:
            done = self.__dict__.get(_DONE)
            if done is None:
                done = self.__dict__.setdefault(_DONE, {})
            before = done.get(known[0])
            if before[1:3] < known[1:3] if before is not None else len(done) < _MOST_DONE:
                done[known[0]] = known  # before anybody can be told
        original(self)

    return resemble(task_done, original)


def learn_done(queue: Any) -> None:
    """The current lane has seen that all items of a queue are done with."""
    done = queue.__dict__.get(_DONE)
    if done:
        for _, known in sorted(done.items()):
            learn("done", known)


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
