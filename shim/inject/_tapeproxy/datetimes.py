"""The clocks in `datetime`: now, utcnow and today, in the types themselves. What they measure is time.time's affair.

The dicts of the two types are edited in place. A subclass in their stead would be found out by the first isinstance
check, pickle or serialiser that compares types.
"""

from __future__ import annotations

import gc
import sys

from . import clock, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_undo = []  # type: list[tuple[Any, dict[str, Any], dict[str, Any]]]  # type, its methods, ours
_read = clock.read
_reads: Callable[[], int] | None = None


def install() -> None:
    """Replace the methods as soon as the agent imports datetime."""
    hooks.on_import("datetime", _patch)


def uninstall() -> None:
    """Give the types their own methods back; ours, where the agent has kept them, follow the real clock."""
    global _read
    _read = clock.REAL.time_ns
    for cls, originals, _ in _undo:
        _put(cls, originals)


def reinstall(read: Callable[[], int] | None = None) -> None:
    """Undo uninstall(). `read`: what to read in place of the lanes' clock."""
    global _read, _reads
    _reads = read or _reads
    _read = _reads or clock.read
    for cls, _, ours in _undo:
        _put(cls, ours)


def wrap(cls: Any, names: tuple[str, ...], make: Callable[[Any, str, Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put around our methods of a type what `make` makes of the type, the name and the function."""
    for known, _, ours in _undo:
        if known is cls:
            for name in names:
                inner = ours[name].__func__
                outer = make(cls, name, inner)
                outer.__module__, outer.__name__, outer.__qualname__ = inner.__module__, name, inner.__qualname__
                outer.__doc__, outer.__annotations__ = inner.__doc__, {}
                ours[name] = classmethod(outer)
            _put(cls, ours)


def _patch(module: ModuleType) -> None:
    if module.datetime.__module__ != "datetime" or _undo:  # not the module we know, or imported anew
        return
    _replace(module.datetime, {"now": _now(module.datetime), "utcnow": _utcnow(module.datetime, module.timezone.utc)})
    _replace(module.date, {"today": _today})


def _replace(cls: Any, functions: dict[str, Callable[..., Any]]) -> None:
    originals = {name: vars(cls)[name] for name in functions}
    for name, function in functions.items():
        function.__module__, function.__name__, function.__qualname__ = "datetime", name, f"{cls.__name__}.{name}"
        function.__doc__, function.__annotations__ = originals[name].__doc__, {}
    ours = {name: classmethod(function) for name, function in functions.items()}
    _undo.append((cls, originals, ours))
    _put(cls, ours)


def _put(cls: Any, methods: dict[str, Any]) -> None:
    namespace = gc.get_referents(cls.__dict__)[0]  # what the mappingproxy stands before
    namespace.update(methods)
    # Have the type drop what it remembers of its methods. Setting this attribute does, and the way around the type's
    # own __setattr__, which refuses for types made in C, is cheaper than ctypes by 10 ms.
    abstract = type.__dict__["__abstractmethods__"]
    abstract.__set__(cls, ())
    abstract.__delete__(cls)


def _now(datetime: Any) -> Callable[..., Any]:
    fromtimestamp = datetime.fromtimestamp
    general = vars(datetime)["fromtimestamp"]

    def now(cls: Any, tz: Any = None) -> Any:
        # Microseconds survive the way through a float until the year 2242.
        seconds = _read() // 1000 / 1e6
        if cls is datetime:
            return fromtimestamp(seconds, tz)
        return general.__get__(None, cls)(seconds, tz)

    return now


def _utcnow(datetime: Any, utc: Any) -> Callable[..., Any]:
    fromtimestamp = datetime.fromtimestamp

    def utcnow(cls: Any) -> Any:
        if sys.version_info >= (3, 12):
            from _warnings import warn

            warn(_DEPRECATED, DeprecationWarning, 2)
        moment = fromtimestamp(_read() // 1000 / 1e6, utc).replace(tzinfo=None)
        if cls is datetime:
            return moment
        fields = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
        return cls(*[getattr(moment, field) for field in fields])

    return utcnow


def _today(cls: Any) -> Any:
    return cls.fromtimestamp(_read() / 1e9)


_DEPRECATED = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware "
    "objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)
