"""Turns of an event loop, and cancellation, of whatever loop runs the current coroutine. Loads no loop."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

_CANCELLED = ("CancelledError", "Cancelled", "GeneratorExit")


async def take_turn() -> None:
    """Let the other tasks of asyncio's loop have theirs."""
    if _running_loop() is not None:
        await _Yield()


async def wait_for_ever() -> None:
    """Wait to be cancelled, as it was on the tape."""
    loop = _running_loop()
    if loop is not None:
        await loop.create_future()
    trio: Any = sys.modules.get("trio")
    if trio is not None:
        await trio.sleep_forever()


def is_cancelled(error: BaseException) -> bool:
    """Whether an exception is a cancellation."""
    return any(kind.__name__ in _CANCELLED and _is_known(kind.__module__) for kind in type(error).__mro__)


def _is_known(module: str) -> bool:
    return module.partition(".")[0] in ("asyncio", "builtins", "concurrent", "trio")


def _running_loop() -> Any:
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            pass
    return None


class _Yield:
    """Awaited, it lets the other tasks of asyncio's loop have their turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield
