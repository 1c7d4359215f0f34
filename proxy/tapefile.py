"""Tapes as files: creating, appending, reading. Knows paths, descriptors and the clock; the bytes are `tapes/`'s.

A tape is written under its own name from the first byte, so that it survives `kill -9`, and never over another.
"""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from tapeproxy.tapes.decoder import Ending, Entry, TapeDecoder
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.errors import Place, TapeFormatError, TapeWriteError
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.records import Head, Record

_READ = 1 << 18


def started_at() -> str:
    """The present time as a head wants it: RFC 3339, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class TapeWriter:
    """An open tape file. Nothing is acknowledged before `commit` has returned.

    After a failed write the tape is closed at its last whole flush, `failure` says why, and every later call does
    nothing: the run goes on, its tape does not.
    """

    def __init__(self, path: Path, head: Head, *, force: bool = False) -> None:
        """Create `path`. Raises TapeWriteError when it exists (unless `force`) or can't be written."""
        self.path = path
        self.failure: TapeWriteError | None = None
        self._origin = time.monotonic_ns()
        self._fd = _create(path, force=force)
        self._size = 0
        self._encoder = TapeEncoder(head)
        try:
            self._write(self._encoder.flush())
        except OSError as error:
            os.close(self._fd)
            path.unlink()
            raise _write_error(path, error) from None

    def now(self) -> int:
        """Nanoseconds since the tape was started, never going back."""
        return time.monotonic_ns() - self._origin

    def add(self, record: Record) -> int:
        """Append one record; returns its index. It is on the tape after the next `commit`."""
        return self._encoder.add(record)

    def commit(self) -> None:
        """Hand everything added so far to the operating system. Never raises: see `failure`."""
        self._append(self._encoder.flush)

    def seal(self, *, trace: str, outcome: str) -> None:
        """Finish the tape and close the file. Never raises: see `failure`."""
        if self.failure is None:
            t = self.now()
            self._append(lambda: self._encoder.seal(t=t, trace=trace, outcome=outcome))
        if self.failure is None:
            os.close(self._fd)

    def _append(self, render: Callable[[], bytes]) -> None:
        if self.failure is not None:
            return
        try:
            self._write(render())
        except OSError as error:
            self.failure = _write_error(self.path, error)
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            os.close(self._fd)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        self._size += len(data)


def read_entries(path: Path, endings: list[Ending] | None = None) -> Iterator[Entry]:
    """Yield the records of a tape file; append its Ending to `endings`. Raises TapeFormatError."""
    decoder = TapeDecoder(str(path))
    with _open(path) as file:
        while data := file.read(_READ):
            yield from decoder.feed(data)
    ending = decoder.finish()
    if endings is not None:
        endings.append(ending)


def load(path: Path) -> tuple[Tape, Ending]:
    """Read a whole tape into memory. Raises TapeFormatError."""
    endings: list[Ending] = []
    tape = assemble(read_entries(path, endings), str(path))
    return tape, endings[0]


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fix = "`tapeproxy ls` lists the tapes here" if error.errno == errno.ENOENT else ""
        raise TapeFormatError(f"the tape cannot be opened: {reason}", place=Place(str(path)), fix=fix) from None


def _create(path: Path, *, force: bool) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if force:
            path.unlink(missing_ok=True)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise _write_error(path, error) from None


def _write_error(path: Path, error: OSError) -> TapeWriteError:
    fixes = {
        errno.EEXIST: "name another with -o, or replace it with --force",
        errno.ENOSPC: "free some space, or name a tape elsewhere with -o",
    }
    what = (
        "the tape exists already"
        if error.errno == errno.EEXIST
        else (f"the tape cannot be written: {(error.strerror or str(error)).lower()}")
    )
    fix = fixes.get(error.errno or 0, "name a tape in a folder you can write with -o")
    return TapeWriteError(what, where=str(path), fix=fix)
