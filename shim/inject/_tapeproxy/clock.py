"""The functions of `time`, on the lanes' clocks. Knows what each is called and counts from, not what time it is.

Each replacement is a bound method: like the builtin it stands for, and unlike a function, it may be kept as an
attribute of a class (as logging.Formatter keeps `time.localtime`) without taking the instance for an argument.
"""

from __future__ import annotations

import time as _time
from types import MethodType, ModuleType

from . import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_clock: Any
if settings.FORK:
    from . import forkedtime

    _clock = forkedtime
elif settings.SKIP:
    from . import skippedtime

    _clock = skippedtime
elif settings.REPLAY:
    from . import tapedtime

    _clock = tapedtime
else:
    from . import livetime

    _clock = livetime

REAL: Any = ModuleType("time", _time.__doc__)
"""The module `time` as it was before us."""
REAL.__dict__.update(_time.__dict__)

read: Callable[[], int] = _clock.read
rest: Callable[[Any, Any], None] = _clock.rest
advance: Callable[[Any, int], None] = _clock.advance
ask: Callable[[Any], int] = _clock.ask
_fine: Callable[[], int] = _clock.read_fine
_seconds: Callable[[Any], float] = _clock.seconds
_origin = settings.ORIGIN
_MISSING = object()
WALL_CLOCKS = [getattr(_time, name) for name in ("CLOCK_REALTIME", "CLOCK_TAI") if hasattr(_time, name)]

_WORK = ("CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID")
_OF_WORK = [getattr(_time, name) for name in _WORK if hasattr(_time, name)]


class _Home:
    """What the replacements are bound to: the module `time` in everything that pickle, copy and the eye can see."""

    def __reduce__(self) -> tuple[Any, ...]:
        return __import__, ("time",)

    def __getattr__(self, name: str) -> Any:
        return getattr(_time, name)

    def __deepcopy__(self, memo: object) -> _Home:
        return self

    def __repr__(self) -> str:
        return repr(_time)


def use(source: Any) -> None:
    """Have another source of the lanes' time from now on: livetime, tapedtime or skippedtime."""
    global read, rest, advance, ask, _fine, _seconds, _origin
    read, rest, advance, ask, _fine = source.read, source.rest, source.advance, source.ask, source.read_fine
    _origin = settings.ORIGIN
    _seconds = _any_seconds


def _any_seconds(_: object) -> float:
    return read() / 1e9


def seconds() -> float:
    """time.time(), for the other parts."""
    return read() / 1e9


def time_ns(_: object) -> int:
    return read()


def monotonic(_: object) -> float:
    return (read() - _origin) / 1e9


def monotonic_ns(_: object) -> int:
    return read() - _origin


def perf_counter(_: object) -> float:
    return (_fine() - _origin) / 1e9


def perf_counter_ns(_: object) -> int:
    return _fine() - _origin


def process_time(_: object) -> float:
    return REAL.process_time() if settings.SKIP else (read() - _origin) / 1e9


def process_time_ns(_: object) -> int:
    return REAL.process_time_ns() if settings.SKIP else read() - _origin


def thread_time(_: object) -> float:
    return REAL.thread_time() if settings.SKIP else (read() - _origin) / 1e9


def thread_time_ns(_: object) -> int:
    return REAL.thread_time_ns() if settings.SKIP else read() - _origin


def clock_gettime(_: object, clk_id: int, /) -> float:
    return clock_gettime_ns(_, clk_id) / 1e9


def clock_gettime_ns(_: object, clk_id: int, /) -> int:
    real: int = REAL.clock_gettime_ns(clk_id)  # raises where there is no such clock
    if settings.SKIP and clk_id in _OF_WORK:
        return real
    return read() if clk_id in WALL_CLOCKS else read() - _origin


def localtime(_: object, seconds: float | None = None, /) -> Any:
    return REAL.localtime(read() // 1_000_000_000 if seconds is None else seconds)


def gmtime(_: object, seconds: float | None = None, /) -> Any:
    return REAL.gmtime(read() // 1_000_000_000 if seconds is None else seconds)


def ctime(_: object, seconds: float | None = None, /) -> Any:
    return REAL.ctime(read() // 1_000_000_000 if seconds is None else seconds)


def asctime(_: object, tuple: Any = _MISSING, /) -> Any:
    return REAL.asctime(REAL.localtime(read() // 1_000_000_000) if tuple is _MISSING else tuple)


def strftime(_: object, format: str, tuple: Any = _MISSING, /) -> Any:
    return REAL.strftime(format, REAL.localtime(read() // 1_000_000_000) if tuple is _MISSING else tuple)


def _pass(_: object, *args: Any, real: Callable[..., Any]) -> Any:
    return real(*args)


class _Replacement:
    """One replaced function, which can be made to step aside even where the agent keeps a reference to it."""

    __slots__ = ("bound", "code", "function", "name", "real")

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self.real = getattr(REAL, name)
        self.function = function
        self.code = function.__code__
        self.bound = MethodType(function, _home)

    def install(self) -> None:
        setattr(_time, self.name, self.bound)
        self.function.__kwdefaults__ = None
        self.function.__code__ = self.code

    def uninstall(self) -> None:
        if getattr(_time, self.name) is self.bound:
            setattr(_time, self.name, self.real)
        self.function.__kwdefaults__ = {"real": self.real}
        self.function.__code__ = _pass.__code__


def install() -> None:
    """Put the functions of `time` on the lanes' clocks; again after uninstall()."""
    if not _replacements:
        stand_in(_seconds, "time")
        for function in _FUNCTIONS:
            stand_in(function)
    for replacement in _replacements:
        replacement.install()


def uninstall(keep: tuple[str, ...] = ()) -> None:
    """Give `time` its own functions back; those of ours that the agent has kept pass its calls on to them."""
    for replacement in _replacements:
        if replacement.name not in keep:
            replacement.uninstall()


def replacements() -> list[_Replacement]:
    """What install() puts in place, for the part that watches it."""
    return _replacements


def pairs() -> list[tuple[Any, Any]]:
    """What stands for what: our functions, and the real ones."""
    return [(replacement.bound, replacement.real) for replacement in _replacements]


def stand_in(function: Callable[..., Any], name: str = "") -> None:
    """Take `function` for `time.name`, from the next install() on. Its first argument is of no use to it."""
    name = name or function.__name__
    real = getattr(REAL, name, None)
    if real is not None:  # this platform has one
        function.__module__, function.__name__, function.__qualname__ = "time", name, name
        function.__doc__, function.__annotations__ = real.__doc__, {}
        _replacements.append(_Replacement(name, function))


_FUNCTIONS = (
    time_ns,
    monotonic,
    monotonic_ns,
    perf_counter,
    perf_counter_ns,
    process_time,
    process_time_ns,
    thread_time,
    thread_time_ns,
    clock_gettime,
    clock_gettime_ns,
    localtime,
    gmtime,
    ctime,
    asctime,
    strftime,
)
_home = _Home()
_replacements = []  # type: list[_Replacement]
