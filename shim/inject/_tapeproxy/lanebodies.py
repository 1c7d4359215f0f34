"""Somebody's code, run in a lane of its own; afterwards the flow is in the lane where it was."""

from __future__ import annotations

from .lanes import LANE, Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def within(lane: Lane, function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function in a lane."""
    before = LANE.get(None)
    LANE.set(lane)
    try:
        return function(*args, **kwargs)
    finally:
        if before is not None:
            LANE.set(before)


async def within_async(lane: Lane, awaitable: Any) -> Any:
    """Await something in a lane."""
    before = LANE.get(None)
    LANE.set(lane)
    try:
        return await awaitable
    finally:
        if before is not None:
            LANE.set(before)
