"""What comes and goes through descriptors that are watched: a program's output and input, the own standard input.

Knows descriptors and the bytes that pass, by os.read, os.write or a file object; whose they are is others' business.
"""

from __future__ import annotations

import io
import os

from .likeness import stand_for
from .values import LIMIT, Digest, digest, emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

taps: dict[int, Any] = {}
"""By descriptor: what hears of its bytes, in a call. Those of a file object are gone when it is closed."""


def install() -> None:
    """Watch os.read and os.write."""
    os.read = stand_for(_reading(os.read), os.read)
    os.write = stand_for(_writing(os.write), os.write)


def _reading(original: Callable[..., bytes]) -> Callable[..., bytes]:
    def read(_: object, fd: Any, length: Any, /) -> bytes:
        data = original(fd, length)
        hear = taps.get(fd)
        if hear is not None:
            hear(data)
        return data

    return read


def _writing(original: Callable[..., int]) -> Callable[..., int]:
    def write(_: object, fd: Any, data: Any, /) -> int:
        written = original(fd, data)
        hear = taps.get(fd)
        if hear is not None:
            try:
                hear(memoryview(data).cast("B")[:written])
            except (TypeError, ValueError):  # a buffer of another shape; it is written all the same
                pass
        return written

    return write


class Stream:
    """What comes, piece by piece, told; content up to the limit, then digests. An empty piece is the end, told once.

    `of`: the number of the process's value, or of the connection's; -1 for the own standard input.
    """

    def __init__(self, name: str, lane: str, of: int = -1, what: str = "pipe") -> None:
        self._what = what
        self._name = name
        self._lane = lane
        self._of = of
        self._length = 0
        self._ended = False

    def __call__(self, piece: Any, taped: int | None = None, **facts: Any) -> None:
        if not piece:
            if self._ended:
                return
            self._ended = True
        data = {"of": self._of, **facts} if self._of >= 0 else facts
        partner = {} if taped is None else {"taped": taped}
        try:
            content = bytes(piece)
            self._length += len(content)
            if self._length <= LIMIT:
                emit(self._what, self._name, self._lane, content=content, data=data, **partner)
            else:
                known = {"length": len(content), "digest": digest(content), **partner}
                emit(self._what, self._name, self._lane, data={**data, "cut": True}, **known)
        except Exception:  # noqa: S110  # the agent has its bytes, whatever we could not tell of them
            pass


class Sent(Digest):
    """What is written to a program."""

    def __call__(self, piece: Any) -> None:
        self.update(piece)


class Tap(io.RawIOBase):
    """A raw stream that tells `taps` what passes through it; below the stock buffers and text layers."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.name = raw.name
        self.mode = raw.mode

    def _hear(self, data: Any) -> None:
        hear = taps.get(self._raw.fileno())
        if hear is not None:
            hear(data)

    def readinto(self, room: Any) -> Any:
        count = self._raw.readinto(room)
        if count is not None:
            self._hear(memoryview(room).cast("B")[:count])
        return count

    def readall(self) -> Any:
        data = self._raw.readall()
        if data is not None:
            self._hear(data)
            self._hear(b"")
        return data

    def write(self, data: Any) -> Any:
        count = self._raw.write(data)
        if count:
            self._hear(memoryview(data).cast("B")[:count])
        return count

    def readable(self) -> bool:
        return bool(self._raw.readable())

    def writable(self) -> bool:
        return bool(self._raw.writable())

    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return int(self._raw.seek(offset, whence))

    def fileno(self) -> int:
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        return bool(self._raw.isatty())

    def close(self) -> None:
        if not self.closed:
            if not self._raw.closed:
                taps.pop(self._raw.fileno(), None)
            super().close()
            self._raw.close()


def tapped(raw: Any, buffering: int) -> Any:
    """A file object over a raw stream, as open() would make it, that tells what passes."""
    tap = Tap(raw)
    if buffering == 0:
        return tap
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    return io.BufferedReader(tap, size) if raw.readable() else io.BufferedWriter(tap, size)
