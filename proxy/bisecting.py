"""A search for a turn, driven: probes are made as `tapes/bisecting.py` asks for them. Knows not what a probe is."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tapeproxy.tapes.bisecting import Found, Probe, Search, Unsound, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """What a probe came to, and why in a few words, where there is more to say than the verdict."""

    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A probe is over."""

    probe: Probe
    judged: Judged
    took_ns: int


type Make = Callable[[Probe], Awaitable[Judged]]


async def until_signalled[T](work: Coroutine[Any, Any, T]) -> T:
    """Do work in a new task, which SIGINT, SIGTERM and SIGHUP cancel. Raises CancelledError then."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handled = list[int]()
    try:
        for number in numbers:
            with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
                if signal.getsignal(number) != signal.SIG_IGN:
                    loop.add_signal_handler(number, task.cancel)
                    handled.append(number)
        return await task
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def search(steps: Search, make: Make, told: Callable[[Told], None]) -> Found | Unsound:
    """Make probes until the search is over. Raises what `make` raises."""
    try:
        probe = next(steps)
        while True:
            begun = time.monotonic_ns()
            judged = await make(probe)
            told(Told(probe, judged, time.monotonic_ns() - begun))
            probe = steps.send(judged.verdict)
    except StopIteration as stop:
        result: Found | Unsound = stop.value
        return result
