"""The clock on which `threading` and `queue` measure their own waits, where the order of locks is kept (--threads).

It is the real one, moved on for a thread whose wait came to nothing: in a recording by what the system left of the
wait, in a replay by all of it. So whoever waited in vain finds the time over in both, and waits no second time.
"""

from __future__ import annotations

from . import clock, hooks
from .lanes import HERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

now = clock.REAL.monotonic
"""The real monotonic clock, in seconds."""


def monotonic() -> float:
    """What stands for time.monotonic in the modules that wait."""
    real: float = now()
    return real + getattr(HERE, "spared", 0.0)


def spare(seconds: float) -> None:
    """Move this thread's clock on."""
    HERE.spared = getattr(HERE, "spared", 0.0) + seconds


def install() -> None:
    """Put the waits of the standard library on this clock."""
    hooks.on_import("threading", lambda module: setattr(module, "_time", monotonic))
    hooks.on_import("queue", lambda module: setattr(module, "time", monotonic))
    hooks.on_import("concurrent.futures._base", _patch_futures)


def _patch_futures(module: Any) -> None:
    copy: Any = type(module)("time")
    copy.__dict__.update(module.time.__dict__)
    copy.monotonic = monotonic
    module.time = copy
