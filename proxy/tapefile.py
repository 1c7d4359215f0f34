"""Tapes as files: creating, appending, reading. Knows paths, descriptors and the clock; the bytes are `tapes/`'s.

A tape is written under its own name from the first byte, so that it survives `kill -9`, and never over another.
One module, for writer and reader share what a file may look like at any moment of a crash.
"""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tapeproxy.proxy.shelving import Shelving
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.proxy.watching import watched
from tapeproxy.tapes.decoder import Ending, Entry, TapeDecoder
from tapeproxy.tapes.errors import NoTapeError, Place, TapeExistsError, TapeFormatError, TapeWriteError
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.magic import is_encrypted
from tapeproxy.tapes.records import Head, Record

if TYPE_CHECKING:
    from tapeproxy.tapes.encoder import TapeEncoder
    from tapeproxy.tapes.encryptedframes import Framer

_READ = 1 << 18
_PIECES, _LEAST = 1 << 12, 1 << 6
"""To weigh records, a file is read in so many pieces, but none shorter than that."""
_BIG = 4 << 20
_LOCK_TRIES, _LOCK_WAIT = 20, 0.001
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
_ELSEWHERE = "name a tape in a folder you can write with -o"


def started_at() -> str:
    """The present time as a head wants it: RFC 3339, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class TapeWriter:
    """An open tape file. Nothing is acknowledged before `commit` has returned.

    After a failed write the tape is closed at its last whole flush, `failure` says why, and every later call does
    nothing: the run goes on, its tape does not, and has no seal. A file that somebody removed, replaced, shortened or
    wrote to meanwhile counts as one that can't be written. Calls after `seal` do nothing (a late hook is no error).
    """

    def __init__(
        self,
        path: Path,
        head: Head,
        *,
        force: bool = False,
        fsync: bool = False,
        failed: Callable[[TapeWriteError], None] = lambda _: None,
        framer: "Framer | None" = None,
    ) -> None:
        """Create `path` with the head on it. Raises TapeExistsError, or TapeWriteError when it can't be written.

        `force` replaces a tape that exists, once the new one's head is written; until then the old one stays. `fsync`
        has every commit wait for the disk, for a tape that outlives a power cut. `failed` is called once, at once.
        `framer` encrypts all that is written.
        """
        self.path = path
        self.failure: TapeWriteError | None = None
        self._failed = failed
        self._fsync = fsync
        self._origin = time.monotonic_ns()
        self._encoder = _encoder(head)
        self._ignored = 0
        self._framer = framer
        first = self._encoder.flush()
        if framer is not None:
            first = framer.begin + framer.frames(first)
        try:
            self._fd: int | None = (_replace if force else _create)(path, first)
        except OSError as error:
            raise write_error(path, error) from None
        self._size = len(first)
        # A file system that does not count links can't tell that a file is gone.
        self._linked = os.fstat(self._fd).st_nlink > 0
        if fsync:
            self._append(lambda: b"")
            sync_folder(path.parent)

    def now(self) -> int:
        """Nanoseconds since the tape was started, never going back."""
        return time.monotonic_ns() - self._origin

    def add(self, record: Record) -> int:
        """Append one record; returns its index. It is on the tape after the next `commit`.

        Raises ValueError for a record that no line can hold (`TapeEncoder.add`).
        """
        if self._fd is None:
            self._ignored += 1
            return self._encoder.index + self._ignored - 1
        return self._encoder.add(record)

    def commit(self) -> None:
        """Hand everything added so far to the operating system. Never raises: see `failure`."""
        self._append(self._encoder.flush)

    def check_place(self) -> None:
        """See to it that the tape is still where it was made. Never raises: see `failure`."""
        if self._fd is None:
            return
        try:
            there = os.path.samestat(self.path.stat(), os.fstat(self._fd))
        except OSError:
            there = False
        if not there:
            self._fail(_gone(self.path, "it was moved away or replaced"))

    def seal(
        self,
        *,
        trace: str,
        outcome: str,
        lanes: Mapping[str, str] | None = None,
        messages: str | None = None,
        uploads: str | None = None,
    ) -> None:
        """Finish the tape and close the file. Never raises: see `failure`."""
        t = self.now()
        self._append(
            lambda: self._encoder.seal(
                t=t, trace=trace, outcome=outcome, lanes=lanes, messages=messages, uploads=uploads
            )
        )
        if (framer := self._framer) is not None:
            self._framer = None
            self._append(framer.finish)
        self._close()

    def discard(self) -> None:
        """Close the file and remove it: there was nothing to tape."""
        self._failed = lambda _: None
        self._close()
        self.path.unlink(missing_ok=True)

    def _append(self, render: Callable[[], bytes]) -> None:
        if self._fd is None:
            return
        try:
            if touched := self._touched(os.fstat(self._fd)):
                self._fail(_gone(self.path, touched))
                return
            data = render() if self._framer is None else self._framer.frames(render())
            _write(self._fd, data)
            if self._fsync:
                os.fsync(self._fd)
            self._size += len(data)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            self._fail(write_error(self.path, error))

    def _touched(self, now: os.stat_result) -> str:
        """What somebody else did to the file; empty: nothing. Writing on would leave a tape that can't be read."""
        if self._linked and now.st_nlink == 0:
            return "it was removed or replaced"
        if now.st_size != self._size:
            return f"something else {'wrote to' if now.st_size > self._size else 'shortened'} it"
        return ""

    def _fail(self, failure: TapeWriteError) -> None:
        self.failure = failure
        self._close()
        self._failed(failure)

    def _close(self) -> None:
        if self._fd is None:
            return
        fd, self._fd = self._fd, None  # its number may be another file's from here on
        try:
            os.close(fd)
        except OSError as error:  # a network file system says only now that the data did not arrive
            if self.failure is None:
                self._fail(write_error(self.path, error))


def read_entries(path: Path, endings: list[Ending] | None = None, ask: Ask = ask_environment) -> Iterator[Entry]:
    """Yield the records of a tape file; append its Ending to `endings`. Raises TapeFormatError.

    `ask` gives the secret of an encrypted tape, which is decrypted in memory; raises LockedTapeError without it.
    """
    decoder = TapeDecoder(str(path))
    for data in _plain(path, ask):
        yield from decoder.feed(data)
    ending = decoder.finish()
    if endings is not None:
        endings.append(ending)


def weigh_entries(path: Path, ask: Ask = ask_environment) -> Iterator[tuple[Entry, float]]:
    """Yield the records of a tape file, each with the bytes that it takes of the file. Raises what `read_entries` does.

    Compressed bytes hold no line alone, so that is a share of a small piece of the file, by length of text.
    """
    decoder = TapeDecoder(str(path))
    read = text = 0  # where the piece begins, in the file and in the text
    ended, weighed = 0, 0.0  # where the last record ended
    for data in _slices(_plain(path, ask), max(_size(path) // _PIECES, _LEAST)):
        entries = [*decoder.feed(data)]
        rate = len(data) / max(decoder.plain - text, 1)
        for entry in entries:
            ended += entry.size
            at = read + (ended - text) * rate
            yield entry, at - weighed
            weighed = at
        read, text = read + len(data), decoder.plain
    decoder.finish()


def load(path: Path, ask: Ask = ask_environment) -> tuple[Tape, Ending]:
    """Read a whole tape: into memory, and what of a big one is too much for that, onto disk.

    Raises TapeFormatError, and LockedTapeError as `read_entries` does.
    """
    endings: list[Ending] = []
    tape = assemble(read_entries(path, endings, ask), str(path), Shelving(secret=is_locked(path)))
    tape.last = endings[0].hash
    return tape, endings[0]


def is_big(path: Path) -> bool:
    """Whether a plain tape takes long to read: some tenths of a second or more. Raises TapeFormatError."""
    return _size(path) >= _BIG and not is_locked(path)


def is_locked(path: Path) -> bool:
    """Whether a file begins as an encrypted tape does. Raises TapeFormatError when it can't be read."""
    return is_encrypted(next(read_pieces(path), b""))


def is_being_written(path: Path) -> bool:
    """Whether a recorder has this tape open. Always False on Windows, and on a file system without locks."""
    if sys.platform != "win32":
        import fcntl

        with contextlib.suppress(OSError), path.open("rb") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def _encoder(head: Head) -> "TapeEncoder":
    from tapeproxy.tapes.encoder import TapeEncoder  # a replay writes none

    return TapeEncoder(head)


def _hold(fd: int) -> None:
    """Lock a tape for as long as it is open: for `is_being_written` alone, whom else should it keep out?"""
    if sys.platform != "win32":
        import fcntl

        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # somebody asks, just now, whether the tape is being written
                time.sleep(_LOCK_WAIT)
            except OSError:  # a file system without locks
                return
            else:
                return


def _slices(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        for at in range(0, len(piece), size):
            yield piece[at : at + size]


def _size(path: Path) -> int:
    with _open(path) as file:
        return os.fstat(file.fileno()).st_size


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        what, place = f"the tape cannot be opened: {_reason(error)}", Place(str(path))
        if error.errno == errno.ENOENT:
            raise NoTapeError(what, place=place, fix="`tapeproxy ls` lists the tapes here") from None
        raise TapeFormatError(what, place=place) from None


def _plain(path: Path, ask: Ask) -> Iterator[bytes]:
    """The bytes of a tape, decrypted where it is encrypted."""
    pieces = read_pieces(path)
    first = next(pieces, b"")
    if not is_encrypted(first):
        return chain((first,), pieces)
    from tapeproxy.proxy.encrypting import decrypt

    return decrypt(chain((first,), pieces), str(path), ask)


def read_pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file as they are, 256 KiB at a time. Raises TapeFormatError."""
    with _open(path) as file:
        yield from watched(path, file, iter(lambda: _read(file, path), b""))


def _read(file: BinaryIO, path: Path) -> bytes:
    try:
        return file.read(_READ)
    except OSError as error:
        raise TapeFormatError(f"the tape cannot be read: {_reason(error)}", place=Place(str(path))) from None


def _create(path: Path, first: bytes) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # not the tape, but a file where its folder should be
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    fd = os.open(path, _NEW, 0o600)
    _hold(fd)  # before there is anything to read, so that whoever reads it knows that more will come
    try:
        _write(fd, first)
    except OSError:
        os.close(fd)
        path.unlink()
        raise
    return fd


def _replace(path: Path, first: bytes) -> int:
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "there is something there that is not a file")
    new = path.with_name(f".tape-{os.urandom(8).hex()}")
    fd = _create(new, first)
    try:
        new.replace(path)
    except OSError:
        os.close(fd)
        new.unlink()
        raise
    return fd


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: Path) -> None:
    """Have the disk know the names in `folder`. Not every system lets a folder be opened for this."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _gone(path: Path, what: str) -> TapeWriteError:
    fix = "leave a tape alone while it is being written"
    return TapeWriteError(f"the tape cannot be written any more: {what}", where=str(path), fix=fix)


def write_error(path: Path, error: OSError) -> TapeWriteError:
    """What went wrong when `path` was written, as an error of ours."""
    if error.errno == errno.EEXIST:
        fix = "name another, or replace it with --force"
        return TapeExistsError("the file exists already", where=str(path), fix=fix)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return TapeWriteError(
        f"the tape cannot be written: {_reason(error)}",
        where=str(path),
        fix="free some space, or name a tape elsewhere with -o" if full else _ELSEWHERE,
    )
