"""Gives copied contexts lanes of their own: whoever copies one means to run something else in it.

Knows contextvars.copy_context. asyncio's and trio's own copies keep the lane, because their tasks get theirs elsewhere
and their callbacks belong to whoever scheduled them.
"""

from __future__ import annotations

import contextvars

from . import completion, hooks
from .lanes import LANE, current
from .likeness import stand_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_copy_context = contextvars.copy_context

# Not asyncio.threads: a cancelled to_thread goes on while its task does, too.
_SCHEDULERS = (
    *("asyncio.base_events", "asyncio.events", "asyncio.futures", "asyncio.locks", "asyncio.runners"),
    *("asyncio.sslproto", "asyncio.taskgroups", "asyncio.tasks", "asyncio.unix_events", "trio._core._run"),
)


def copy_context(_: object) -> contextvars.Context:
    parent = LANE.get(None) or current()
    completion.watch(parent)
    lane = parent.child("c")
    context = _copy_context()
    context.run(LANE.set, lane)
    return context


def install() -> None:
    """Replace contextvars.copy_context, except for those who schedule."""
    plain = type(contextvars)("contextvars")
    plain.__dict__.update(contextvars.__dict__)
    replacement = contextvars.copy_context = stand_for(copy_context, _copy_context, "contextvars")

    def keep(module: Any) -> None:
        if getattr(module, "contextvars", None) is contextvars:
            module.contextvars = plain
        if getattr(module, "copy_context", None) is replacement:
            module.copy_context = _copy_context

    for name in _SCHEDULERS:
        hooks.on_import(name, keep)
