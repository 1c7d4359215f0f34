"""Time in a replay of a tape that holds no clock: the machine's, and the sleeps that were cut short. Patches nothing.

So a sleep of 20 s takes 20 s by every clock that the agent can read, and a loop with a deadline comes to its end. To be
imported before clocks are replaced.
"""

from __future__ import annotations

from time import time_ns as _wall

from . import timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_base = _wall() - timeline.now()  # from the timeline to the wall clock


def begin() -> None:
    """Begin another run in the same interpreter: with the machine's time."""
    global _base
    _base = _wall() - timeline.now()


def read() -> int:
    """The time: ns since the epoch."""
    return timeline.now() + _base


read_fine = instant = read


def seconds(_: object) -> float:
    """time.time()."""
    return read() / 1e9


def rest(_lane: Any, _seconds: Any) -> None:
    """A lane has slept: all of them have the same time."""


advance = rest


def ask(_: Any) -> int:
    """A lane makes a request: its reads are not counted."""
    return 0
