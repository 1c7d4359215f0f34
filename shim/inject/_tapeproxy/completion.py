"""Tells in which order asyncio's tasks complete, of those that have asked for something, or may have in a thread.

Knows tasks, not the tape.
"""

from __future__ import annotations

import sys

from . import channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .lanes import Lane


def watch(lane: Lane) -> None:
    """The lane makes its first request, or has something done in a thread: tell when its task is done.

    Costs what does neither nothing.
    """
    asyncio: Any = sys.modules.get("asyncio")
    if lane.watched or lane.kind != "a" or asyncio is None or lane.id.startswith("?"):
        return
    lane.watched = True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return
    if task is not None:
        task.add_done_callback(_Tell(lane.id, lane.parent))


class _Tell:
    """A callback; a class, so that a task's repr says little of it."""

    __slots__ = ("lane", "parent")

    def __init__(self, lane: str, parent: str | None) -> None:
        self.lane, self.parent = lane, parent

    def __call__(self, task: object) -> None:
        channel.emit("done", lane=self.lane, parent=self.parent)

    def __repr__(self) -> str:
        return "<tapeproxy>"
