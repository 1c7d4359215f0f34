"""Acquiring a watched lock while recording: as ever, and then it is told who came. Knows no order but the one that is.

Each success or failure of an acquisition has a number, counted for each lock. A success is told where another flow had
the lock before; a failure always.
"""

from __future__ import annotations

from . import channel
from .lockorder import Watched, flow, is_own_question
from .lockwaits import now, spare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def acquire(lock: Any, watched: Watched, real: Callable[..., bool], blocking: Any, timeout: Any) -> bool:
    """Acquire the lock with `real(lock, blocking, timeout)`; returns and raises what that does."""
    if not blocking and is_own_question():
        return real(lock, False, -1)
    got, begun = False, now() if timeout != -1 else 0.0
    try:
        got = real(lock, blocking, timeout)
        who = flow()
        if who is not None:
            number = next(watched.count)  # in one step: a refusal has nothing to hold others off with
            if not got:
                if blocking:
                    spare(max(timeout - (now() - begun), 0.0))
                channel.emit("edge", what="refused", on=watched.id, lane=who, n=number)
            elif who != watched.last:
                watched.last = who
                channel.emit("edge", what="acquired", on=watched.id, lane=who, n=number)
    except BaseException:  # a signal's handler has raised: nobody would release what it is not told that it has
        if got:
            watched.release(lock)
        raise
    return got
