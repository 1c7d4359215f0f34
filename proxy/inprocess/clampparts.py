"""The shim's parts in this interpreter: which of them, installed once, put on while a context is open.

They do what they do in a run of their own, but that every change is watched (`changes`), so that it can be undone; and
modules that an agent's process would import later are looked after by `redirects`, which watches imports.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import Any

import tapeproxy
from tapeproxy.proxy.inprocess import waits
from tapeproxy.proxy.inprocess.bindings import Bindings
from tapeproxy.proxy.inprocess.changes import Change, Changes, gate
from tapeproxy.proxy.inprocess.flows import inside
from tapeproxy.proxy.inprocess.routes import route_to
from tapeproxy.shim.inject._tapeproxy import (
    attribution,
    callers,
    channel,
    clock,
    contexts,
    datetimes,
    hooks,
    identifiers,
    loops,
    noise,
    othertools,
    randomness,
    sleeping,
    tasks,
    tempfiles,
    threads,
    timeline,
)
from tapeproxy.tapes.errors import UsageError

_PARTS = (randomness, identifiers, tempfiles, noise, othertools, contexts, threads, tasks)
_WITHOUT = {
    "concurrent.futures._base",  # the hash of futures that are in a set already must not change
    "datetime",  # its types are edited by `datetimes` itself
    "numpy.random.mtrand",  # seeded anew by each context
}
_BUILTINS = tuple(module for name in ("os", "posix", "_thread", "contextvars") if (module := sys.modules.get(name)))
"""Modules that parts change when they are installed."""


class ClampParts:
    """All of them, once for this process."""

    def __init__(self) -> None:
        """Raises UsageError where somebody else has the clock already."""
        if not isinstance(time.time_ns, BuiltinFunctionType):
            raise UsageError(
                "somebody has replaced time.time_ns already, so this interpreter's clock can't be taped",
                fix="import tapeproxy.proxy.inprocess.replays before time is frozen",
            )
        self.changes = Changes()
        self._bindings = Bindings(self._quiet)
        self._known = 0
        self._waiting: dict[str, list[Callable[[Any], object]]] = {}
        self._before: dict[str, list[Callable[[], object]]] = {}
        self._patched = set[int]()
        self._clocks: set[int] | None = None
        self._install()

    def _install(self) -> None:
        hooks.on_import = self._collect
        hooks.before_import = self._collect_before
        callers.more_of_ours.append(os.path.dirname(os.path.abspath(tapeproxy.__file__)) + os.sep)  # noqa: PTH100, PTH120 - as in code objects
        timeline.takes_alarms = False
        sleeping.patient = True
        for part in _PARTS:
            self.changes.watch(_BUILTINS, part.install)
        urandom = next(change.ours for change in self.changes.all if change.name == "urandom")
        hooks.on_import("random", lambda module: setattr(module, "_urandom", urandom))
        hooks.on_import("asyncio.tasks", sleeping._count)
        hooks.on_import("trio._timeouts", sleeping._count)
        for name in ("http.client", "httpcore", "httpcore2", "aiohttp.client_reqrep"):
            hooks.on_import(name, _TAGGED[name])
        attribution.direct = True
        attribution.is_wire = _is_led
        hooks.on_import("asyncio.selector_events", waits.patch_loops)
        hooks.on_import("aiohttp.connector", loops._patch_pools)
        datetimes._patch(sys.modules.get("datetime") or __import__("datetime"))
        datetimes.uninstall()
        clock.use(__import__("tapeproxy.shim.inject._tapeproxy.livetime", fromlist=["x"]))
        clock.install()
        clock.stand_in(_sleep, "sleep")
        clock.uninstall()
        for replacement in clock.replacements():
            replacement.bound = gate(replacement.real, MethodType(replacement.function, replacement.bound.__self__))

    def _collect(self, name: str, fn: Callable[[Any], object]) -> None:
        if name not in _WITHOUT:
            self._waiting.setdefault(name, []).append(fn)

    def _collect_before(self, name: str, fn: Callable[[], object]) -> None:
        self._before.setdefault(name, []).append(fn)

    def add(self, name: str, fn: Callable[[Any], object]) -> None:
        """Have `fn(module)` change a module, as the parts do."""
        self._collect(name, fn)

    # --- while a context is open ---------------------------------------------------------------------------------

    def put_on(self, *, only_time: bool = False) -> None:
        """Put everything in place, or only what tells the time and waits."""
        if self._bindings.any_new():
            for name, module in self._to_patch():
                self.patch(name, module)
        if self._known != len(self.changes.all):
            self._known = len(self.changes.all)
            self._bindings.know([*self.changes.pairs(), *((one.real, one.bound) for one in clock.replacements())])
        self._bindings.look()
        self.changes.put_on(_waits if only_time else None)
        self._clocks = {id(one.bound) for one in clock.replacements()} if only_time else None
        self._bindings.put_on(self._clocks)
        for replacement in clock.replacements():
            if getattr(time, replacement.name) is replacement.real:  # else somebody has frozen it
                replacement.install()
        datetimes.reinstall(_wall)
        _forget_freezegun()
        if _travels():
            othertools._step_aside()

    def look_through(self, namespace: dict[str, Any]) -> None:
        """Have the names in these globals, too, mean what they are to mean in a context."""
        self._bindings.look(namespace)
        if self.changes.on:
            self._bindings.put_on(self._clocks)

    def take_off(self) -> None:
        """Put everything back."""
        self._bindings.look()
        clock.uninstall()
        datetimes.uninstall()
        self._bindings.take_off()
        self.changes.take_off()
        _forget_freezegun()

    def _to_patch(self) -> Iterator[tuple[str, Any]]:
        for name in self._waiting:
            module = sys.modules.get(name)
            if module is not None and id(module) not in self._patched and not _is_being_imported(module):
                yield name, module

    def about_to_import(self, name: str) -> None:
        """A module is looked for, in a context."""
        for fn in self._before.get(name, ()):
            fn()

    def patch(self, name: str, module: Any) -> None:
        """Change a module that is waited for, once."""
        if id(module) in self._patched:
            return
        self._patched.add(id(module))
        for fn in self._waiting.get(name, ()):
            try:
                self.changes.watch(_owners(module), lambda fn=fn: fn(module))  # type: ignore[misc]  # of a loop
            except Exception as error:  # a library of another make: its import, or the context, must not fail for it
                text = f"{name}: {error!r}"
                channel.emit("note", what="hook-failed", text=text, data={"module": name})

    def _quiet(self, module: ModuleType) -> None:
        if getattr(module, "time", None) is time:
            self.changes.watch((module,), lambda: noise.quiet(module))


_TAGGED: dict[str, Callable[[Any], object]] = {
    "http.client": attribution._patch_http_client,
    "httpcore": attribution._patch_httpcore,
    "httpcore2": attribution._patch_httpcore,
    "aiohttp.client_reqrep": attribution._patch_aiohttp_request,
}


def _is_led(host: Any, port: Any) -> bool:
    """Whether a request there goes to an open context, which is to know its lane."""
    name = host.decode("latin-1") if isinstance(host, bytes | bytearray) else str(host)
    return route_to(name, port) is not None


def _owners(module: Any) -> list[Any]:
    own = [value for value in vars(module).values() if isinstance(value, type)]
    return [module, *dict.fromkeys(cls for cls in own if cls.__module__ == module.__name__)]


def _is_being_imported(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _waits(change: Change) -> bool:
    """Whether a change is to how event loops wait."""
    return getattr(change.owner, "__module__", "") == "asyncio.selector_events"


def _wall() -> int:
    """For datetime, whose types are everybody's."""
    return clock.read() if inside() else clock.REAL.time_ns()


def _sleep(_: object, seconds: float, /) -> None:
    from tapeproxy.shim.inject._tapeproxy import settings

    skips = settings.REPLAY or settings.SKIP
    (sleeping.sleep_replaying if skips else sleeping.sleep_recording)(_, seconds)


def _travels() -> bool:
    module = sys.modules.get("time_machine")
    return bool(getattr(module, "traveller_stack", None) or getattr(module, "coordinates_stack", None))


def _forget_freezegun() -> None:
    """What it remembers of modules' names is no longer so."""
    module = sys.modules.get("freezegun.api")
    if module is not None:
        getattr(module, "_GLOBAL_MODULES_CACHE", {}).clear()
