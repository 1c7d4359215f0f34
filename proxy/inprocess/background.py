"""One event loop in a thread of its own, shared by every context of this process. Knows threads, not what is served."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from tapeproxy.proxy.inprocess.flows import outside


class Background:
    """A loop, whose thread is started when there is something to do: most replays have no use for it.

    Made at its first use, and again in a forked child, where the thread is missing.
    """

    _current: "Background | None" = None
    _making = threading.Lock()

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.SelectorEventLoop()
        self.thread: threading.Thread | None = None

    @classmethod
    def get(cls) -> "Background":
        """The loop of this process."""
        with cls._making, outside():
            if cls._current is None or cls._current.pid != os.getpid():
                cls._current = cls()
            return cls._current

    @classmethod
    def is_thread(cls, ident: int) -> bool:
        """Whether that is the loop's thread, in this process."""
        current = cls._current
        return current is not None and current.thread is not None and current.thread.ident == ident

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine that runs on the loop; raises what it raises."""
        return self.submit(work).result()

    def submit[T](self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop."""
        self._start()
        with outside():  # what runs there takes its context from here
            return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, fn: Callable[..., object], *args: Any) -> None:
        """Call a function on the loop."""
        self._start()
        with outside():
            self.loop.call_soon_threadsafe(fn, *args)

    def _start(self) -> None:
        with self._making, outside():
            if self.thread is None:
                self.thread = threading.Thread(target=self.loop.run_forever, name="tapeproxy", daemon=True)
                self.thread.start()
