"""Which locks are watched, what each is called in every run, and who is said to acquire it (--threads).

Only locks that were made through `threading`, by the agent or on its behalf, are watched: by a table
of their ids. What is done about an acquisition is lockrecord's and lockreplay's affair.

A watched lock never waits for anything while one that is not watched is held: so the few locks of the standard library
under which an agent's code runs are watched, too.
"""

from __future__ import annotations

import os
import sys
from _weakref import ref
from itertools import count

from . import hooks, locktypes, lockwaits, settings
from .lanes import HERE, current, root
from .likeness import resemble, stand_for
from .locktypes import LOCK, RLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

_BUILT_OF_LOCKS = ("threading", "queue")
"""What these make, they make for their caller."""
_STDLIB_WATCHED = frozenset(
    (
        ("logging", "createLock"),  # handlers: an agent's own emit() runs under it
        ("functools", "__init__"),  # cached_property, before 3.12
        ("sched", "__init__"),
        ("concurrent.futures._base", "__init__"),  # futures, and what as_completed waits with
    )
)
"""By module and function: the only locks that are watched of those that the standard library makes for itself."""
_NETWORK = frozenset(
    (
        *("aiohttp", "anyio", "botocore", "grpc", "h11", "h2", "httpcore", "httpcore2", "httpx", "httpx2", "requests"),
        *("trio", "urllib3", "uvloop", "websocket", "websockets"),
        *("ddtrace", "langsmith", "logfire", "newrelic", "opentelemetry", "posthog", "sentry_sdk", "tqdm"),
    )
)
"""Packages whose locks are taken as the network or a timer wants, and of which no order reaches the agent."""
_STDLIB = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_OURS = os.path.dirname(__file__) + os.sep
_LONGEST = 60  # characters of a module's name in the id of a lock

watched: dict[int, Watched] = {}
"""By the id of the lock itself."""
_code: dict[str, CodeType] = {}  # of functions in threading that we have to know when they call


class Watched:
    """A watched lock: its `id` in every run, who had it `last`, how often it was acquired or refused (`count`).

    `condition`: of one that Condition.wait made for itself, the Condition's own lock.
    """

    __slots__ = ("condition", "count", "id", "last", "made", "order", "ref", "release")

    def __init__(self, lock: Any, name: str, owner: str, frame: FrameType, condition: Watched | None) -> None:
        self.id = name
        self.last: str | None = owner
        self.count = count()
        self.made = (frame.f_code.co_filename, frame.f_lineno)
        self.order: Any = None  # lockreplay: what the tape says
        self.release: Callable[[Any], None] = type(lock).release
        self.condition = condition
        key, gone = id(lock), watched.pop  # in the closure: it is called until the very end
        self.ref = ref(lock, lambda _: gone(key, None))


def flow() -> str | None:
    """Whose an acquisition is: the thread's, or in a pool's thread its work item's. None: of nobody who has a name.

    Tasks of one loop are one flow here. Which of them comes first is for their loop to say, and to hold one of them
    would hold all. Nor has an import a name: which thread comes first to one is chance, and the others wait for it.
    """
    if getattr(HERE, "importing", 0):
        return None
    name = _name()
    return None if name.startswith("?") else name


def _name() -> str:
    lane = getattr(HERE, "lane", None)
    if lane is not None and lane.kind != "e":
        own: str = lane.id
        return own
    name = current().id
    while name.rpartition("/")[2].startswith("a"):
        name = name.rpartition("/")[0]
    return name


def is_own_question() -> bool:
    """Whether a Condition tries its lock only to see if somebody holds it. For what the lock's own acquire calls."""
    return sys._getframe(3).f_code is _code.get("_is_owned")


def install() -> None:
    """Watch the locks that `threading` makes from now on."""
    lockwaits.install()
    if settings.REPLAY:
        from . import lockreplay

        order: Callable[..., bool] = lockreplay.acquire
        plain: Any = lockreplay.plain
        lockreplay.install()
    else:
        from . import lockrecord

        order, plain = lockrecord.acquire, None
    undo = locktypes.edit(order, plain, watched.get)
    hooks.on_import("threading", _patch_threading)
    os.register_at_fork(after_in_child=_after_fork)

    import atexit

    # The first registered is the last called: after that our modules are taken apart.
    atexit.register(undo)


def _patch_threading(module: Any) -> None:
    _code["_is_owned"] = module.Condition._is_owned.__code__
    _code["thread"] = module.Thread.__init__.__code__
    wait = getattr(module.Condition.wait, "__wrapped__", module.Condition.wait).__code__
    allocate, rlock = module._allocate_lock, module.RLock

    def allocate_lock(_: object) -> Any:
        lock = allocate()
        _watch(lock, sys._getframe(1))
        return lock

    def make_rlock(*args: Any, **kwargs: Any) -> Any:
        lock = rlock(*args, **kwargs)
        if type(lock) is RLOCK:
            _watch(lock, sys._getframe(1))
        return lock

    def allocate_waiter() -> Any:
        lock = allocate()
        frame = sys._getframe(1)
        condition = watched.get(id(frame.f_locals["self"]._lock)) if frame.f_code is wait else None
        if condition is not None:
            _watch(lock, frame, condition)
        return lock

    module.RLock = resemble(make_rlock, rlock)
    module._allocate_lock = allocate_waiter
    if isinstance(module.Lock, type):  # from 3.13 on
        module.Lock = _stand_in_class()
    else:
        module.Lock = stand_for(allocate_lock, module.Lock)


def _stand_in_class() -> Any:
    """What stands for threading.Lock where that is a type: it can be called, and everything is asked of the type."""

    class Kind(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if args or kwargs:
                return LOCK(*args, **kwargs)  # for its error
            lock = LOCK()
            _watch(lock, sys._getframe(1))
            return lock

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, LOCK)

        def __subclasscheck__(cls, subclass: Any) -> bool:
            return issubclass(subclass, LOCK)

        def __eq__(cls, other: Any) -> bool:
            return other is cls or other is LOCK

        def __hash__(cls) -> int:
            return hash(LOCK)

        def __repr__(cls) -> str:
            return repr(LOCK)

        def __getattribute__(cls, name: str) -> Any:
            return getattr(LOCK, name)

    def refuse(_: object, **__: object) -> None:
        raise TypeError("type '_thread.lock' is not an acceptable base type")

    return Kind("lock", (), {"__module__": "_thread", "__slots__": (), "__init_subclass__": refuse})


def _watch(lock: Any, frame: FrameType | None, condition: Watched | None = None) -> None:
    """Watch a lock that was made in `frame`, if it is one of those that are to be."""
    try:
        maker = _maker(frame) if condition is None else frame
        if maker is None:
            return
        # A module is run once: by chance in this thread or in that.
        once = maker.f_code.co_name == "<module>"
        lane, owner = (root(), root().id) if once else (current(), _name())
        if lane.id.startswith("?") or owner.startswith("?"):
            return
        module = str(maker.f_globals.get("__name__") or "")[:_LONGEST]
        kind = "#" + (module if condition is None else "wait")
        number = lane.kids.get(kind, 0)
        lane.kids[kind] = number + 1
        watched[id(lock)] = Watched(lock, f"{lane.id}{kind}:{number}", owner, maker, condition)
    except Exception:
        if settings.REPLAY:
            raise


def _maker(frame: FrameType | None) -> FrameType | None:
    """The frame that a lock is made for; None: nobody's who is of interest."""
    thread = _code["thread"]
    while frame is not None and frame.f_globals.get("__name__") in _BUILT_OF_LOCKS:
        if frame.f_code is thread or frame.f_code.co_name == "<module>":
            return None  # a thread's own, the library's own
        frame = frame.f_back
    if frame is None:
        return None
    name, file = str(frame.f_globals.get("__name__") or ""), frame.f_code.co_filename
    if file.startswith(_OURS) or name.partition(".")[0] in _NETWORK:
        return None
    installed = any(part in file for part in _INSTALLED)
    if installed and getattr(HERE, "importing", 0) > 0:
        return None  # for caches and lazy beginnings: whether it is needed at all is looked up without it
    stdlib = file.startswith((_STDLIB, "<frozen ")) and not installed
    return None if stdlib and (name, frame.f_code.co_name) not in _STDLIB_WATCHED else frame


def _after_fork() -> None:
    """The locks that a fork brings along are others than the parent's from now on."""
    name, mine = root().id, _name()
    for lock in list(watched.values()):
        lock.id = f"{name}<{lock.id}"
        lock.last, lock.count, lock.order = mine, count(), None
