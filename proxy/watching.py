"""Who is told how far the reading of a tape has come. Knows neither tapes nor screens; without a watcher, nothing."""

import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

type Watcher = Callable[[Path, int, int], None]
"""Called with a file, the bytes of it that are done, and those that it has: equal when the reading is over."""

WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watched(path: Path, file: BinaryIO, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pass the pieces of an open file on, and tell the watcher of each that has been used up."""
    watcher = WATCHER.get()
    if watcher is None:
        yield from pieces
        return
    size, done = os.fstat(file.fileno()).st_size, 0
    try:
        for piece in pieces:
            yield piece
            done += len(piece)
            if done < size:
                watcher(path, done, size)
    finally:
        watcher(path, size, size)
