"""The parts of `--io`, in the order in which they are installed. Loaded only when the launcher asks for them."""

from __future__ import annotations

import sys

_PARTS = ("files", "listings", "pids", "subprocesses", "stdin", "overlay")


def install() -> None:
    """Hook the agent's reads."""
    for name in _PARTS:
        module = f"{__package__}.{name}"
        __import__(module)
        sys.modules[module].install()
