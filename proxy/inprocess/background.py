"""One event loop in a thread of its own, shared by every context of this process. Knows threads, not what is served."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any


class Background:
    """A running loop. Made at its first use, and again in a forked child, where the thread is missing."""

    _current: "Background | None" = None
    _making = threading.Lock()

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.SelectorEventLoop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="tapeproxy", daemon=True)
        self.thread.start()

    @classmethod
    def get(cls) -> "Background":
        """The loop of this process."""
        with cls._making:
            if cls._current is None or cls._current.pid != os.getpid():
                cls._current = cls()
            return cls._current

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine that runs on the loop; raises what it raises."""
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        return done.result()
