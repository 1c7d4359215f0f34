"""The parts of `--io`, in the order in which they are installed. Loaded only when the launcher asks for them."""

from __future__ import annotations

import sys

_PARTS = ("files", "listings", "states", "pids", "subprocesses", "stdin", "changes", "sockets", "lookups")
# These keep the real calls for themselves, and so have to come before any is replaced.
_FIRST = ("values", "tapedvalues", "pipes", *_PARTS)


def install() -> None:
    """Hook the agent's reads."""
    for name in _FIRST:
        __import__(f"{__package__}.{name}")
    for name in _PARTS:
        sys.modules[f"{__package__}.{name}"].install()
