"""Modules that have taken a function by name (`from time import time`): they get ours while a context is open.

Each module's globals are looked through once, when a context opens and, of what was imported in it, when it closes.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tapeproxy.shim.inject._tapeproxy import noise

type _Namespace = dict[str, Any]

_QUIET = ("_pytest", "execnet", "hypothesis", "logging", "pluggy", "pytest", "xdist")
"""Packages whose own timing is the real one, besides those of the shim's `noise`: who reports on tests, and loggers,
whose reads depend on the level that is set."""
_LEFT_ALONE = (
    *("contextvars", "datetime", "importlib", "multiprocessing", "os", "posix", "queue", "random", "sched", "select"),
    *("selectors", "signal", "socketserver", "ssl", "subprocess", "tapeproxy", "tempfile", "threading", "time", "uuid"),
    *("time_machine", "_time_machine"),
)
"""Packages that are changed in another way, or keep what they have."""
_LEFT_ALONE_BELOW = ("asyncio.", "concurrent.", "trio.")


class Bindings:
    """Names in modules that mean a replaced function. `quiet` is called with each module that keeps the real clock."""

    def __init__(self, quiet: Callable[[ModuleType], None]) -> None:
        self._quiet = quiet
        self._seen = set[int]()
        self._newest: object = None
        self._found: list[tuple[_Namespace, str, Any, Any]] = []
        self._ours: dict[int, tuple[Any, Any]] = {}

    def know(self, pairs: list[tuple[Any, Any]]) -> None:
        """These are replaced: real and ours."""
        self._ours = {id(real): (real, ours) for real, ours in pairs}
        self._ours |= {id(ours): (real, ours) for real, ours in pairs}

    def any_new(self) -> bool:
        """Whether modules were imported since the last look."""
        return self._newest != _newest()

    def look(self, *more: _Namespace) -> None:
        """Look through what was imported since the last time, and these globals."""
        newest = _newest()
        new = [] if self._newest == newest else list(sys.modules.items())
        self._newest = newest
        for name, module in new:
            if id(module) in self._seen:
                continue
            self._seen.add(id(module))
            if _is_of(name, _QUIET):
                self._quiet(module)
            elif isinstance(module, ModuleType) and name not in noise.MODULES and not _is_left_alone(name):
                self._look_through(vars(module))
        for namespace in more:
            if id(namespace) not in self._seen:
                self._seen.add(id(namespace))
                self._look_through(namespace)

    def _look_through(self, namespace: _Namespace) -> None:
        if self._ours.keys().isdisjoint(map(id, list(namespace.values()))):
            return
        for name, value in list(namespace.items()):
            known = self._ours.get(id(value))
            if known is not None:
                self._found.append((namespace, name, *known))

    def put_on(self, only: set[int] | None = None) -> None:
        """Have the names mean ours; `only`: the ids of those of ours that are wanted."""
        for namespace, name, real, ours in self._found:
            if namespace.get(name) is real and (only is None or id(ours) in only):
                namespace[name] = ours

    def take_off(self) -> None:
        """Have them mean what they meant."""
        for namespace, name, real, ours in self._found:
            if namespace.get(name) is ours:
                namespace[name] = real


def _newest() -> tuple[int, str, int]:
    """Another one whenever a module was imported: it comes last."""
    name = next(reversed(sys.modules))
    return len(sys.modules), name, id(sys.modules.get(name))


def _is_of(name: str, packages: tuple[str, ...]) -> bool:
    top = name.partition(".")[0]
    return top in packages or top.startswith("pytest_")


def _is_left_alone(name: str) -> bool:
    top = name.partition(".")[0]
    return top in _LEFT_ALONE or name.startswith(_LEFT_ALONE_BELOW)
