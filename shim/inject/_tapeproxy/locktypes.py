"""The methods of the two types of lock, edited in the types: a watched lock's acquisitions go another way.

Knows the types, and which of their methods acquire. A lock stays what it was to everything that looks at it.
"""

from __future__ import annotations

import _thread
import gc

from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LOCK: Any = _thread.LockType
RLOCK: Any = _thread.RLock
REAL_ACQUIRE: Callable[..., bool] = LOCK.acquire
"""`acquire` of a plain lock, as it was: for locks of our own."""


def edit(order: Callable[..., bool], plain: Any, find: Callable[[int], Any]) -> Callable[[], None]:
    """Lead acquisitions of the locks that `find` knows by their ids to `order`; returns what undoes that.

    `order(lock, found, acquire, blocking, timeout)` calls the real `acquire(lock, blocking, timeout)`. `plain(acquire)`
    makes what acquires all other locks; None: they are acquired as ever.
    """
    edited = [(cls, _methods(cls, order, plain, find)) for cls in (LOCK, RLOCK)]
    originals = [(cls, {name: vars(cls)[name] for name in ours}) for cls, ours in edited]
    for cls, ours in edited:
        for name, function in ours.items():
            resemble(function, vars(cls)[name]).__module__ = cls.__module__
            del function.__wrapped__  # builtin methods have none
        _put(cls, ours)

    def undo() -> None:
        for cls, methods in originals:
            _put(cls, methods)

    return undo


def _methods(cls: Any, order: Callable[..., bool], plain: Any, find: Callable[[int], Any]) -> dict[str, Any]:
    acquire, enter = _acquiring(cls, order, plain, find)
    if cls is RLOCK:
        return {"acquire": acquire, "__enter__": enter, "_acquire_restore": _restoring(cls, order, find)}
    acquire_lock, _ = _acquiring(cls, order, plain, find)
    return {"acquire": acquire, "acquire_lock": acquire_lock, "__enter__": enter}


def _acquiring(cls: Any, order: Callable[..., bool], plain: Any, find: Callable[[int], Any]) -> tuple[Any, Any]:
    """`acquire` and `__enter__`, all in closures: these functions are called until the very end."""
    real, id_of, is_owned = cls.acquire, id, getattr(cls, "_is_owned", None)
    simple = plain(real) if plain is not None else real
    if is_owned is None:

        def acquire(self: Any, blocking: Any = True, timeout: Any = -1) -> bool:
            lock = find(id_of(self))
            if lock is None:
                return simple(self, blocking, timeout)  # type: ignore[no-any-return]
            return order(self, lock, real, blocking, timeout)

        def enter(self: Any) -> bool:
            lock = find(id_of(self))
            if lock is None:
                return simple(self, True, -1)  # type: ignore[no-any-return]
            return order(self, lock, real, True, -1)

        return acquire, enter

    def acquire_again(self: Any, blocking: Any = True, timeout: Any = -1) -> bool:
        lock = find(id_of(self))
        if lock is None or is_owned(self):
            return simple(self, blocking, timeout)  # type: ignore[no-any-return]
        return order(self, lock, real, blocking, timeout)

    def enter_again(self: Any) -> bool:
        lock = find(id_of(self))
        if lock is None or is_owned(self):
            return simple(self, True, -1)  # type: ignore[no-any-return]
        return order(self, lock, real, True, -1)

    return acquire_again, enter_again


def _restoring(cls: Any, order: Callable[..., bool], find: Callable[[int], Any]) -> Any:
    real, restore, id_of = cls.acquire, cls._acquire_restore, id

    def _acquire_restore(self: Any, state: Any, /) -> None:
        """Whoever waited on a Condition has its lock again in the end, whatever comes between."""
        lock = find(id_of(self))
        if lock is None:
            restore(self, state)
            return

        def acquire(self: Any, blocking: bool, timeout: float) -> bool:
            if blocking and timeout < 0:
                restore(self, state)
            elif not real(self, blocking, timeout):
                return False
            else:
                for _ in range(state[0] - 1):
                    real(self)
            return True

        try:
            order(self, lock, acquire, True, -1)
        except BaseException:
            if not self._is_owned():
                restore(self, state)
            raise

    return _acquire_restore


def _put(cls: Any, methods: dict[str, Any]) -> None:
    """Set methods of a type made in C; see datetimes."""
    gc.get_referents(cls.__dict__)[0].update(methods)
    abstract = type.__dict__["__abstractmethods__"]
    abstract.__set__(cls, ())
    abstract.__delete__(cls)
