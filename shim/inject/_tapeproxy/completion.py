"""Tells in which order tasks and threads complete, of those that have asked for something, or may have in a thread.

Knows asyncio's tasks and lanes, not the tape.
"""

from __future__ import annotations

import sys

from . import channel, clock

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
        task.add_done_callback(_Tell(lane))


def tell(lane: Lane) -> None:
    """Tell that the lane has done what it was made for."""
    channel.emit("done", lane=lane.id, parent=lane.parent, ns=clock.REAL.time_ns(), sleeps=lane.sleeps)


def ended(lane: Lane) -> None:
    """A thread, or what a pool's thread did, has ended: tell, if it had made a request."""
    if lane.requests and not lane.id.startswith("?"):
        tell(lane)


class _Tell:
    """A callback; a class, so that a task's repr says little of it."""

    __slots__ = ("lane",)

    def __init__(self, lane: Lane) -> None:
        self.lane = lane

    def __call__(self, task: object) -> None:
        tell(self.lane)

    def __repr__(self) -> str:
        return "<tapeproxy>"
