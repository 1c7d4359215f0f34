"""Puts the patches in place while any route is open, and takes all of them back. Knows which module needs which.

A module that is imported meanwhile is patched when it has been: a finder waits for it.
"""

import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

from tapeproxy.proxy.inprocess import routes
from tapeproxy.proxy.inprocess.aiohttps import patch_connector
from tapeproxy.proxy.inprocess.children import patch_popen, watch_forks
from tapeproxy.proxy.inprocess.clamp import Clamp
from tapeproxy.proxy.inprocess.egress import watch
from tapeproxy.proxy.inprocess.flows import outside
from tapeproxy.proxy.inprocess.httpclients import patch_connections, patch_http_client
from tapeproxy.proxy.inprocess.httpcores import patch_async, patch_pool, patch_sync
from tapeproxy.proxy.inprocess.journal import Journal

type Patch = Callable[[Any, Journal], None]


def _of_httpcore(package: str) -> dict[str, tuple[Patch, ...]]:
    pooled = ("HTTPConnection", "ForwardHTTPConnection", "TunnelHTTPConnection", "Socks5Connection")
    sync = tuple(map(patch_pool, pooled))
    later = tuple(patch_pool(f"Async{name}") for name in pooled)
    return {
        f"{package}._backends.sync": (patch_sync,),
        f"{package}._backends.anyio": (patch_async(package, "AnyIOBackend"),),
        f"{package}._backends.trio": (patch_async(package, "TrioBackend"),),
        f"{package}._sync.connection": sync[:1],
        f"{package}._async.connection": later[:1],
        f"{package}._sync.http_proxy": sync[1:3],
        f"{package}._async.http_proxy": later[1:3],
        f"{package}._sync.socks_proxy": sync[3:],
        f"{package}._async.socks_proxy": later[3:],
    }


_PATCHES: dict[str, tuple[Patch, ...]] = {
    "http.client": (patch_http_client,),
    "urllib3.connection": (patch_connections,),
    "aiohttp.connector": (patch_connector,),
    "subprocess": (patch_popen,),
    **_of_httpcore("httpcore"),
    **_of_httpcore("httpcore2"),
}
_lock = threading.RLock()
_journal = Journal()
_count = 0


def lead(route: routes.Route) -> None:
    """Lead this interpreter's HTTP to a route, from every thread."""
    global _count
    with _lock:
        if not _count:
            watch()
            watch_forks()
            sys.meta_path.insert(0, _finder)
            for name in _PATCHES:
                if (module := sys.modules.get(name)) is not None and not _is_being_imported(module):
                    _patch(name, module)
        _count += 1
        routes.push(route)


def let_go(route: routes.Route) -> None:
    """End what `lead` began; after the last everything is as it was."""
    global _count
    with _lock:
        routes.remove(route)
        _count -= 1
        if not _count:
            sys.meta_path.remove(_finder)
            _journal.undo()


def _patch(name: str, module: Any) -> None:
    with _lock:
        if _count or sys.meta_path[0] is _finder:
            for patch in _PATCHES[name]:
                patch(module, _journal)


def _is_being_imported(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class _Finder:
    """Finds nothing itself: has the modules that are waited for patched as soon as they have run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if Clamp.is_open():
            Clamp.parts().about_to_import(name)
        elif name not in _PATCHES:
            return None
        for finder in [one for one in sys.meta_path if one is not self]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _run_after(spec.loader, name)
                return spec
        return None


def _run_after(loader: Any, name: str) -> None:
    execute = getattr(loader, "exec_module", None)
    if execute is None or isinstance(loader, type) or "exec_module" in getattr(loader, "__dict__", ("exec_module",)):
        return  # of built-in modules

    def exec_module(module: Any) -> None:
        del loader.exec_module
        with outside():  # what a module does when it is imported belongs to no test: only the first one has it
            execute(module)
        if name in _PATCHES:
            _patch(name, module)
        Clamp.imported(name, module)

    loader.exec_module = exec_module


_finder: Any = _Finder()
