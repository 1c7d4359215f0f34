"""Who is told how far the work on a file has come. Knows neither tapes nor screens; without a watcher, nothing."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

type Watcher = Callable[[Path, int, int, str], None]
"""Called with a file, the bytes that are done, those that there are (equal when it is over), and what is done."""

READING = "reading"

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
                watcher(path, done, size, READING)
    finally:
        watcher(path, size, size, READING)


@contextlib.contextmanager
def working(path: Path, size: int, doing: str) -> Iterator[Callable[[int], None]]:
    """Tell the watcher of work on so many bytes: the block calls what it gets with how many more are done."""
    watcher, done = WATCHER.get(), 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if watcher is not None and done < size:
            watcher(path, done, size, doing)

    try:
        yield tell
    finally:
        if watcher is not None:
            watcher(path, size, size, doing)
