"""How much of what was written to a pipe lies there unread. Knows descriptors, not what passes."""

import os
import stat
import struct
import sys
import time
from typing import Final

_LOOK: Final = 0.0002
"""Seconds between two looks."""


def unread(descriptor: int) -> int | None:
    """Bytes that the other side of a pipe or UNIX socket has not read; None where the system does not say.

    Linux: pipe(7), FIONREAD; unix(7), SIOCOUTQ, whose bytes are those of memory.
    """
    if sys.platform != "linux":
        return None
    import fcntl
    import termios

    try:
        request = termios.TIOCOUTQ if stat.S_ISSOCK(os.fstat(descriptor).st_mode) else termios.FIONREAD
        (count,) = struct.unpack("i", fcntl.ioctl(descriptor, request, b"\0\0\0\0"))
    except OSError:
        return None
    return int(count)


class Taken:
    """Waits until the reader of a descriptor has read what was written before, and so reads what comes by itself.

    A reader that does not in `patience` seconds is not waited for again before it has.
    """

    def __init__(self, descriptor: int, patience: float) -> None:
        self._descriptor = descriptor
        self._patience = patience
        self._is_slow = False

    def wait(self) -> None:
        """Return when nothing lies there, or it has lain there for too long."""
        end = time.monotonic() + (0.0 if self._is_slow else self._patience)
        while unread(self._descriptor):
            if time.monotonic() >= end:
                self._is_slow = True
                return
            time.sleep(_LOOK)
        self._is_slow = False
