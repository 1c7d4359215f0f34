"""Other tools that reach into clocks, and what it takes to live with them. Does nothing until one is imported."""

from __future__ import annotations

from . import channel, clock, datetimes, hooks
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import MethodType, ModuleType
    from typing import Any


def install() -> None:
    """Wait for the tools that are known to need something."""
    # It keeps the functions that it finds when it is imported, and takes them for builtins when it travels.
    hooks.before_import("_time_machine", _step_aside_for_import)
    hooks.on_import("_time_machine", _step_back)
    hooks.on_import("time_machine", _patch_time_machine)
    hooks.on_import("freezegun.api", _patch_freezegun)
    for name in ("cloudpickle.cloudpickle", "joblib.externals.cloudpickle.cloudpickle", "ray.cloudpickle.cloudpickle"):
        hooks.on_import(name, _patch_cloudpickle)
    hooks.on_import("dill._dill", _patch_dill)


def _patch_time_machine(module: ModuleType) -> None:
    """Step aside while it travels: it writes into the method tables of builtins, and would crash on our functions."""
    travel = module.travel
    original_start, original_stop = travel.start, travel.stop

    def start(self: Any) -> Any:
        _step_aside()
        _tell()
        try:
            return original_start(self)
        finally:
            _step_back(module)  # if it failed

    def stop(self: Any) -> Any:
        try:
            return original_stop(self)
        finally:
            _step_back(module)

    travel.start, travel.stop = resemble(start, original_start), resemble(stop, original_stop)


def _step_aside_for_import() -> None:
    from importlib.machinery import PathFinder

    if PathFinder.find_spec("_time_machine") is not None:  # else nobody would tell us to take over again
        _step_aside()


def _step_aside() -> None:
    clock.uninstall(keep=("sleep",))
    datetimes.uninstall()


def _step_back(module: ModuleType) -> None:
    """Take over again, unless `module` says that it travels."""
    if not (getattr(module, "traveller_stack", None) or getattr(module, "coordinates_stack", None)):
        clock.install()
        datetimes.reinstall()


_told = False


def _tell() -> None:
    global _told
    if not _told:
        _told = True
        channel.emit("note", what="clock-aside", text="time_machine travels: meanwhile the clock isn't taped", data={})


def _patch_freezegun(module: ModuleType) -> None:
    """Undo its `real_asyncio`, which would put the event loop on the agent's clock: ours has the real one anyway."""
    freeze = module._freeze_time
    original = freeze.start

    def start(self: Any) -> Any:
        factory = original(self)
        for holder, name, value in getattr(self, "undo_changes", ()):
            if name == "time" and isinstance(holder, type):
                setattr(holder, name, value)
        return factory

    freeze.start = resemble(start, original)


def _by_reference(method: MethodType) -> Any:
    """How to pickle one of ours, as pickle itself does: what it is bound to, and its name. None: it isn't one."""
    function = method.__func__
    return method.__reduce__() if function.__globals__.get("__package__") == __package__ else None


def _patch_cloudpickle(module: ModuleType) -> None:
    """It pickles a method's function, by value where it can't find it by name; ours are found as methods alone."""
    table = module._dispatch_table if hasattr(module, "_dispatch_table") else module.CloudPickler.dispatch_table
    method_type = type(clock.pairs()[0][0])
    original = table[method_type]
    table[method_type] = lambda method: _by_reference(method) or original(method)


def _patch_dill(module: ModuleType) -> None:
    method_type = type(clock.pairs()[0][0])
    original = module.Pickler.dispatch[method_type]

    def save(pickler: Any, method: Any) -> None:
        reduced = _by_reference(method)
        if reduced is None:
            original(pickler, method)
        else:
            pickler.save_reduce(*reduced, obj=method)

    module.Pickler.dispatch[method_type] = save
