"""Waiting threads in a replay: they wait as ever, but the timeline knows until when, and what is on its way to them."""

from __future__ import annotations

import sys
from _thread import get_ident

from . import hooks, timeline
from .idleness import is_housekeeping, queued
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def install() -> None:
    """Watch the waits that all others of `threading`, `queue` and `concurrent.futures` come down to."""
    hooks.on_import("threading", _patch_waits)
    hooks.on_import("concurrent.futures.thread", _patch_pools)


def _patch_waits(module: ModuleType) -> None:
    for cls, name in ((module.Condition, "wait"), (module.Thread, "join")):
        setattr(cls, name, _watched(getattr(cls, name)))


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(self: Any, timeout: float | None = None) -> Any:
        if not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9:
            return original(self, timeout)
        if is_housekeeping(get_ident(), sys._getframe(1)):
            return original(self, timeout)
        return timeline.during(timeline.now() + int(timeout * 1e9), None, original, self, timeout)

    return resemble(wait, original)


def _patch_pools(module: ModuleType) -> None:
    item = module._WorkItem
    original_init, original_run = item.__init__, item.run

    def init(self: Any, *args: Any) -> None:
        original_init(self, *args)
        queued.add(self)

    def run(self: Any, *args: Any) -> None:
        queued.discard(self)
        original_run(self, *args)

    item.__init__, item.run = resemble(init, original_init), resemble(run, original_run)
