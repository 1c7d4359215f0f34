"""Whose turn it is with the record wire: mitmproxy's globals allow a process one, and each tape wants one of its own.

A recording that is suspended, as that of a module between two tests, gives its wire up when another needs one, and gets
a new one when it goes on; its tape stays open.
"""

import threading
from pathlib import Path
from typing import Protocol

from tapeproxy.tapes.errors import UsageError


class Turn(Protocol):
    """A recording that has a wire or wants one."""

    path: Path

    @property
    def suspended(self) -> bool:
        """Whether it can do without one."""
        ...

    def park(self) -> None:
        """End the wire, and nothing else."""


class Turns:
    """All recordings of this process, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holder: Turn | None = None

    def take(self, one: Turn) -> None:
        """Have the wire from now on. Raises UsageError where somebody else is at it."""
        with self._lock:
            holder = self._holder
            if holder is not None and holder is not one:
                if not holder.suspended:
                    raise UsageError(
                        f"this interpreter is being recorded already, to {holder.path}",
                        where=str(one.path),
                        fix="end that recording first: one may follow another, but not be within it",
                    )
                holder.park()
            self._holder = one

    def end(self, one: Turn) -> None:
        """It has no wire any more."""
        with self._lock:
            if self._holder is one:
                self._holder = None
