"""Every read of clock, chance, process and environment: what it gave, and which line of the user's asked for it.

For the replay that explains another one (TAPEPROXY_TRACE=1), and loaded in no other. Wraps what the other parts have
put in place, and speaks of the outermost function only: of uuid.uuid4, not of os.urandom below it. Knows nothing of
what becomes of a value. Two kinds of sidecar lines:

site {id, what, where, via}: a place that reads. `where` has up to four lines of the user's own code, the innermost
first; `via` the libraries between that line and the read. Told once.
read {site, lane, n, kind, value, ns, off, clock, count}: `n` requests of the lane came before. `kind` of the value:
wall (`ns` since 1970, and the UTC offset `off` in seconds), int, float, str, bytes (hex), uuid (hex), list, none.
`clock`: how often the lane's clock was read. `count` above 1: so many reads that were only counted, and the last value.
"""

from __future__ import annotations

import os
from _thread import get_ident

from . import channel, clock, datetimes, environment, hooks, lanes
from .callers import stack_key, user_lines
from .lanes import LANE, current
from .likeness import resemble, stand_for
from .settings import PLUMBING
from .valuetexts import describe_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_OF_A_SITE = 10_000
"""Reads of one place that are told one by one; the next ones are counted, and the last value is told."""
MOST_READS = 200_000
"""Reads of one process that are told one by one."""
MOST_BYTES = 64 << 20
"""Of this process's lines, about."""
_COUNTED = 1_000  # reads in one line of counted ones, at most
_OF_RANDOM = (
    *("betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits"),
    *("lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample"),
    *("shuffle", "triangular", "uniform", "vonmisesvariate", "weibullvariate"),
)
_OF_SECRETS = ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe")
_OF_UUID = (
    *("uuid1", "uuid3", "uuid4", "uuid5", "uuid6", "uuid7", "uuid8", "uuid_v1mc", "getnode"),
    *("uuid4_bulk", "uuid4_as_strings_bulk", "uuid7_bulk", "uuid7_as_strings_bulk"),
)
_WALL = ("time", "time_ns", "localtime", "gmtime", "ctime", "asctime", "strftime")

_getpid = os.getpid
_inside: set[int] = set()  # threads that are in a read already
_sites: dict[Any, _Site] = {}
_told = [0, 0]  # reads and bytes


class _Site:
    """A place that reads, and its reads that wait to be told as a number."""

    __slots__ = ("count", "fields", "id", "read")

    def __init__(self, id: str) -> None:
        self.id = id
        self.read = 0
        self.count = 0
        self.fields: dict[str, Any] = {}

    def tell(self, fields: dict[str, Any]) -> None:
        """Tell a read, or only count it."""
        self.read += 1
        if self.read <= MOST_OF_A_SITE and _told[0] < MOST_READS and _told[1] < MOST_BYTES:
            _told[0] += 1
            _told[1] += 120 + len(str(fields["value"]))
            channel.emit("read", site=self.id, count=1, **fields)
            return
        waiting = self.fields
        if self.count >= _COUNTED or (self.count and (waiting["lane"], waiting["n"]) != (fields["lane"], fields["n"])):
            self.flush()
        self.count += 1
        fields["clock"] += self.fields.get("clock", 0)
        self.fields = fields

    def flush(self) -> None:
        """Tell those that wait."""
        if self.count:
            channel.emit("read", site=self.id, count=self.count, **self.fields)
            self.count, self.fields = 0, {}


def install() -> None:
    """Watch whatever the other parts have put in place."""
    for replacement in clock.replacements():
        if replacement.name != "sleep":
            replacement.bound = _stand_in(replacement.bound, f"time.{replacement.name}", _clock(replacement.name))
            replacement.install()
    for name in ("urandom", "getrandom", "getpid", "getppid", "getcwd"):
        _watch_attribute(os, name, f"os.{name}")
    environment.listen(_environment)
    hooks.on_import("datetime", _watch_datetime)
    hooks.on_import("random", _watch_random)
    hooks.on_import("secrets", lambda module: _watch_module(module, _OF_SECRETS))
    for name in ("uuid", "uuid_utils", "fastuuid"):
        hooks.on_import(name, lambda module: _watch_module(module, _OF_UUID))
    hooks.on_import("socket", lambda module: _watch_module(module, ("gethostname",)))
    hooks.on_import("tempfile", _watch_tempfile)
    lanes.at_close(flush)


def flush() -> None:
    """Tell every read that was only counted so far: the process is about to go."""
    for site in list(_sites.values()):
        site.flush()


# --- what is watched ---


def _watch_module(module: Any, names: tuple[str, ...]) -> None:
    for name in names:
        _watch_attribute(module, name, f"{module.__name__}.{name}")


def _watch_attribute(holder: Any, name: str, what: str) -> None:
    function = getattr(holder, name, None)
    if function is not None:
        setattr(holder, name, _stand_in(function, what, _plain))


def _watch_random(module: Any) -> None:
    _watch_module(module, _OF_RANDOM)
    _watch_methods(module.Random, _OF_RANDOM)
    _watch_methods(module.SystemRandom, ("random", "getrandbits", "randbytes"))


def _watch_methods(cls: Any, names: tuple[str, ...]) -> None:
    for name in names:
        method = getattr(cls, name, None)
        if method is not None:
            setattr(cls, name, _method(method, f"random.{cls.__name__}.{name}", 1))


def _watch_tempfile(module: Any) -> None:
    cls = module._RandomNameSequence
    cls.__next__ = _method(cls.__next__, "tempfile's next name", 1)


def _watch_datetime(module: Any) -> None:
    for cls, names in ((module.datetime, ("now", "utcnow")), (module.date, ("today",))):
        datetimes.wrap(cls, names, _class_method)


def _class_method(cls: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    what = f"datetime.{cls.__name__}.{name}"

    def read(of: Any, *args: Any, **kwargs: Any) -> Any:
        return _call(function, (of, *args), kwargs, what, _moment)

    return read


def _stand_in(function: Any, what: str, describe: Callable[..., dict[str, Any]]) -> Any:
    def read(_: object, /, *args: Any, **kwargs: Any) -> Any:
        return _call(function, args, kwargs, what, describe)

    read.__wrapped__ = function  # type: ignore[attr-defined]  # for the signature
    module, _, name = what.partition(".")
    return stand_for(read, function, getattr(function, "__module__", None) or module, name)


def _method(method: Callable[..., Any], what: str, skip: int) -> Callable[..., Any]:
    """A method that is watched; its first `skip` arguments are no matter of the value's."""

    def read(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return _call(method, (self, *args), kwargs, what, _plain, skip)

    return resemble(read, method)


# --- one read ---


def _call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    what: str,
    describe: Callable[..., dict[str, Any]],
    skip: int = 0,
) -> Any:
    me = get_ident()
    if me in _inside:
        return function(*args, **kwargs)
    lane = LANE.get(None) or current()
    before = lane.reads
    _inside.add(me)
    try:
        value = function(*args, **kwargs)
        _tell(what, lane, lane.reads - before, describe, value, args[skip:])
    finally:
        _inside.discard(me)
    return value


def _tell(what: str, lane: Any, reads: int, describe: Callable[..., dict[str, Any]], *of: Any) -> None:
    try:
        found = describe(*of, lane.time if reads else None)
        if found:
            fields = {"lane": lane.id, "n": lane.requests, "ns": None, "off": None, "clock": reads}
            _site(what).tell({**fields, **found})
    except Exception as error:  # the replay goes on as it would without us
        channel.emit("note", what="trace-failed", text=f"{what}: {error!r}", data=None)


def _plain(value: Any, args: tuple[Any, ...], time: int | None) -> dict[str, Any]:
    del time
    if value is None and args and isinstance(args[0], list):
        value = args[0]  # random.shuffle
    kind, text = describe_value(value)
    return {"kind": kind, "value": text}


def _clock(name: str) -> Callable[..., dict[str, Any]]:
    def describe(value: Any, args: tuple[Any, ...], time: int | None) -> dict[str, Any]:
        if time is None:  # time.localtime(some other time)
            return {}
        kind, text = describe_value(value)
        wall = name in _WALL or (name.startswith("clock_gettime") and args[0] in clock.WALL_CLOCKS)
        if not wall:
            return {"kind": kind, "value": text}
        return {"kind": "wall", "value": text, "ns": time, "off": _offset(time)}

    return describe


def _moment(value: Any, args: tuple[Any, ...], time: int | None) -> dict[str, Any]:
    del args
    if time is None:
        return {}
    zone = getattr(value, "tzinfo", None)
    off = _offset(time) if zone is None else int(value.utcoffset().total_seconds())
    return {"kind": "wall", "value": value.isoformat(), "ns": time, "off": off}


def _offset(ns: int) -> int:
    return clock.REAL.localtime(ns // 1_000_000_000).tm_gmtoff or 0


def _environment(name: str, value: bytes | None) -> None:
    if value is None or name in PLUMBING or name.startswith("TAPEPROXY_") or get_ident() in _inside:
        return
    lane = LANE.get(None) or current()
    text = os.fsdecode(value)
    _tell(f"os.environ[{name!r}]", lane, 0, _plain, text, ())


def _site(what: str) -> _Site:
    """The place that reads now, told at its first read."""
    key = (what, *stack_key())
    site = _sites.get(key)
    if site is None:
        lines, libraries = user_lines()
        site = _sites[key] = _Site(f"{_getpid()}.{len(_sites)}")
        channel.emit("site", id=site.id, what=what, where=lines, via=libraries)
    return site
