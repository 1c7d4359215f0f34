"""This process's sidecar file: one JSON line and one write() per event. Knows the file, not what events mean.

Nothing is held back, so a SIGKILL or os._exit loses nothing. Nothing here raises or waits: a full disk, a missing
folder or descriptors that the agent closed cost events, counted and told once writing works again, never the agent.
"""

from __future__ import annotations

import os
from time import time_ns as _time_ns

from . import settings

try:
    from _json import encode_basestring_ascii as _quote
except ImportError:  # an interpreter without the accelerator
    from json.encoder import encode_basestring_ascii as _quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_write, _fstat, _getpid, _open, _close = os.write, os.fstat, os.getpid, os.open, os.close

# Descriptors below stay the agent's: daemons close the low ones, and tests count on getting 3.
_FIRST_DESCRIPTOR = 200
# After a failed open, so many events are lost before the next try.
_RETRY_AFTER = 64


class _File:
    """The sidecar file of the process `pid`: its descriptor (-1: closed), and its inode to know it again by."""

    __slots__ = ("fd", "inode", "lost", "path", "pid", "torn", "wait")

    def __init__(self) -> None:
        self.pid = _getpid()
        self.path = ""
        self.fd = -1
        self.inode: tuple[int, int] = (0, 0)
        self.lost = 0  # events not written since the last that was
        self.wait = 0  # events to drop before the next attempt to open
        self.torn = False  # the file may end within a line


_file = _File()
sink: Any = None
"""Where the run is in somebody else's interpreter: takes each event, as a dict, in place of the file."""


def emit(kind: str, /, **fields: object) -> None:
    """Append one event. `fields` are str, int, float, bool, None, and lists and dicts of them; never raises."""
    global _file
    if sink is not None:
        sink({"k": kind, **fields})
        return
    if not settings.SIDECAR:
        return
    try:
        if _file.pid != _getpid():  # a fork that ran none of our hooks
            _file = _File()
        _append(_file, _line(kind, fields))
    except Exception:  # the agent must not be harmed by what we cannot write; the loss is told later
        _file.lost += 1


def path() -> str:
    """The path of this process's file; empty before the first event."""
    return _file.path if _file.pid == _getpid() else ""


def after_fork() -> None:
    """Begin a file of our own: called in a forked child, whose descriptor is its parent's."""
    global _file
    inherited = _file.fd
    _file = _File()
    if inherited >= 0:
        try:
            _close(inherited)
        except OSError:
            pass


def _line(kind: str, fields: dict[str, object]) -> bytes:
    parts = [f'"k":{_quote(kind)}']
    for name, value in fields.items():
        parts.append(f"{_quote(name)}:{_value(value)}")
    return ("{" + ",".join(parts) + "}\n").encode("ascii")


def _value(value: object) -> str:
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(str(name))}:{_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, float) and value - value == 0.0:  # neither infinite nor NaN, which JSON has no words for
        return float.__repr__(value)
    return _quote(str(value))


def _append(file: _File, line: bytes) -> None:
    if not _ready(file):
        file.lost += 1
        return
    if file.torn:
        line = b"\n" + line
    if file.lost:
        line += _line("note", {"what": "lost", "text": "events could not be written", "data": {"events": file.lost}})
    written = _write(file.fd, line)
    file.torn = written < len(line)
    file.lost = 1 if file.torn else 0


def _ready(file: _File) -> bool:
    """Whether the descriptor is open and still ours: agents close all, and get the same numbers again."""
    if file.fd >= 0:
        try:
            status = _fstat(file.fd)
            if (status.st_dev, status.st_ino) == file.inode:
                return True
        except OSError:
            pass
        file.fd = -1
    if file.wait > 0:
        file.wait -= 1
        return False
    try:
        _reopen(file)
    except OSError:
        file.wait = _RETRY_AFTER
        return False
    return True


def _reopen(file: _File) -> None:
    if not file.path:
        file.path = os.path.join(settings.SIDECAR, f"{file.pid}-{_time_ns():x}.jsonl")
    fd = _open(file.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl

        high = fcntl(fd, F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
        _close(fd)
        fd = high
    except (ImportError, OSError):  # no such call here, or a lower limit on descriptors: the low one will do
        pass
    status = _fstat(fd)
    file.fd, file.inode = fd, (status.st_dev, status.st_ino)
