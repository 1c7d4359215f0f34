"""Waits in a replay within this interpreter: event loops that are made in it skip the time in which they only wait.

Loops from before have timers of others, and are left alone.
"""

from collections.abc import Callable
from typing import Any

from tapeproxy.shim.inject._tapeproxy import channel, loops, settings, skippedtime, tapedtime, timeline
from tapeproxy.shim.inject._tapeproxy.likeness import resemble


def patch_loops(module: Any) -> None:
    """`asyncio.selector_events`: loops that are made from now on."""
    original = module.BaseSelectorEventLoop.__init__

    def init(self: Any, selector: Any = None) -> None:
        original(self, selector)
        if _cuts() and hasattr(self._selector, "__dict__"):
            self.time = _clock()
            self._selector.select = _while_open(loops._cut_short(self, self._selector), self._selector.select)

    module.BaseSelectorEventLoop.__init__ = resemble(init, original)


def _cuts() -> bool:
    return settings.REPLAY or settings.SKIP


def _clock() -> Callable[[], float]:
    """A loop's clock: it begins where the tape's monotonic clock stands, and goes on for as long as the loop is."""
    offset = (skippedtime if settings.SKIP else tapedtime).instant() - settings.ORIGIN - timeline.now()
    return lambda: (timeline.now() + offset) / 1e9


def _while_open(cut_short: Callable[..., Any], poll: Callable[..., Any]) -> Callable[..., Any]:
    def select(timeout: float | None = None) -> Any:
        return (cut_short if _cuts() and channel.sink is not None else poll)(timeout)

    return select
