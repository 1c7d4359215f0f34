"""A program that stands for one on the tape: it writes what that one wrote, takes its input, and ends the same way.

Run by itself, without the shim: `python -I -S served.py CONTENTS exit|wait OUT-AT OUT-SIZE ERR-AT ERR-SIZE CODE STDIN`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes longer to load than all of this
import _thread
import os
import sys
import time


def _copy(fd: int, source: int, at: int, size: int, done: _thread.LockType) -> None:
    try:
        while size > 0:
            data = os.pread(source, min(size, 1 << 16), at)
            if not data:
                break
            at, size = at + len(data), size - len(data)
            while data:
                data = data[os.write(fd, data) :]
    except OSError:  # nobody reads any more
        pass
    try:
        os.close(fd)
    except OSError:
        pass
    done.release()


def _drain(left: int) -> bool:
    """Read so much input, or all there is; whether there may be more."""
    try:
        while left > 0:
            data = os.read(0, min(left, 1 << 16))
            if not data:
                return False
            left -= len(data)
    except OSError:
        return False
    return True


def _outlive(code: int) -> None:
    """Wait for a signal, or for the end of the one who started us."""

    def leave(*_: object) -> None:
        os._exit(code)

    if code >= 0:
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, leave)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.2)


def main() -> None:
    """Do as the tape says."""
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    source = os.open(sys.argv[1], os.O_RDONLY)
    out_at, out_size, err_at, err_size, code, stdin = map(int, sys.argv[3:9])
    waits = []
    for fd, at, size in ((1, out_at, out_size), (2, err_at, err_size)):
        lock = _thread.allocate_lock()
        lock.acquire()
        waits.append(lock)
        _thread.start_new_thread(_copy, (fd, source, at, size, lock))
    _drain(stdin)
    for lock in waits:
        lock.acquire()
    if sys.argv[2] == "wait":
        _outlive(code)
    elif code < 0:
        _signal.signal(-code, _signal.SIG_DFL) if -code not in (_signal.SIGKILL, _signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
