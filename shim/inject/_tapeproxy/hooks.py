"""Runs functions right before or after named modules are imported. Knows the import system, not what is patched.

Also gives a module that is imported outside the main lane a lane for its own code: which thread comes first to a lazy
import is chance, and what the module draws at its top level must not move that thread's values.
"""

from __future__ import annotations

import sys

from . import channel, settings
from .lanes import HERE, LANE, root, run_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from typing import Any

_after: dict[str, list[Callable[[Any], object]]] = {}
_before: dict[str, list[Callable[[], object]]] = {}


def on_import(name: str, fn: Callable[[Any], object]) -> None:
    """Call `fn(module)` after each execution of the module `name`; at once if it is loaded already."""
    _after.setdefault(name, []).append(fn)
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _run(fn, name, module)


def before_import(name: str, fn: Callable[[], object]) -> None:
    """Call `fn()` once, just before the module `name` is first searched for."""
    _before.setdefault(name, []).append(fn)


def install() -> None:
    """Start watching imports."""
    sys.meta_path.insert(0, _Finder())


def _run(fn: Callable[..., object], name: str, *args: Any) -> None:
    try:
        fn(*args)
    except Exception as error:  # the agent's import must not fail for it
        channel.emit("note", what="hook-failed", text=f"{name}: {error!r}", data={"module": name})


class _Finder:
    """First on sys.meta_path: finds nothing itself, but wraps the loaders of the modules that are waited for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        for fn in _before.pop(name, ()):
            _run(fn, name)
        apart = LANE.get(None) is not root()
        if name not in _after and not apart and not settings.THREADS:
            return None
        spec = self._search(name, path, target)
        if spec is not None and spec.loader is not None:
            _watch(spec.loader, apart)
        return spec

    def _search(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
        return None


def _watch(loader: Any, apart: bool) -> None:
    """Make the loader run our functions after the module's code, and that in its own lane, without changing its type.

    Loaders that are classes (built-in and frozen modules) or have no attributes of their own are left alone.
    """
    own = getattr(loader, "__dict__", None)
    method = "exec_module" if hasattr(loader, "exec_module") else "load_module"  # the latter in 3.9's zipimport
    execute = getattr(loader, method, None)
    if own is None or execute is None or isinstance(loader, type) or method in own:
        return

    def load(given: Any) -> Any:
        own.pop(method, None)
        name = given if isinstance(given, str) else given.__spec__.name
        HERE.importing = getattr(HERE, "importing", 0) + 1
        try:
            result = run_in(root().child(f"i:{name}:"), execute, given) if apart else execute(given)
        finally:
            HERE.importing -= 1
        for fn in _after.get(name, ()):
            _run(fn, name, result or given)
        return result

    own[method] = load
