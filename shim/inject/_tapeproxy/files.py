"""Files that the agent opens for reading: taped when they are opened, or served. Knows open, io.open and os.open.

Recording changes nothing about the file object: the content is read beside it, without moving its position. A served
file is a real one, without a name in any folder and with the taped content, so that everything can be done with it.
"""

from __future__ import annotations

import builtins
import io
import os
import stat as modes
import sys

from . import pipes, settings, values
from .likeness import stand_for
from .values import SERVES, agents_path, emit, error_name, error_of, name_of, read_file, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_fstat, _utime, _open = os.fstat, os.utime, os.open


def install() -> None:
    """Replace the ways to open a file."""
    original = io.open
    replacement = stand_for(_opening(original), original)
    builtins.open = io.open = replacement
    os_open = stand_for(_opening_descriptor(os.open), os.open)
    if not SERVES:
        os.supports_dir_fd.add(os_open)
    os.open = os_open


def _opening(original: Callable[..., Any]) -> Callable[..., Any]:
    def open(_: object, /, *args: Any, **kwargs: Any) -> Any:
        file = args[0] if args else kwargs.get("file")
        mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
        if isinstance(file, int):
            if sys._getframe(1).f_globals.get("__name__") == "subprocess" and "b" in mode:
                return pipes.tapped(original(file, mode, 0), args[2] if len(args) > 2 else kwargs.get("buffering", -1))
            return original(*args, **kwargs)
        if not isinstance(mode, str) or kwargs.get("opener") is not None or len(args) > 7:
            return original(*args, **kwargs)  # an opener opens by os.open, and that is ours too
        writes = "+" in mode or "r" not in mode
        reads = "r" in mode or ("a" in mode and "+" in mode)
        if values.MODE == "virtual":
            from . import overlay

            path = overlay.place(file, writes, reads, fresh="w" in mode, exclusive="x" in mode)
            if path is not None:
                place = path
                return _named(original, args, kwargs, lambda _path, flags: _open(place, flags, 0o666))
        path = agents_path(file) if reads else None
        if path is None:
            if writes and settings.RECORD:
                return _told_change(file, None, lambda: original(*args, **kwargs))
            return original(*args, **kwargs)
        if writes and settings.RECORD:
            _told_change(file, None, lambda: None)

        def serve(fd: int) -> Any:
            return _named(original, args, kwargs, lambda _path, _flags: fd)

        return _read(file, path, lambda: original(*args, **kwargs), lambda opened: opened.fileno(), serve, writes)

    return open


def _named(original: Any, args: Any, kwargs: Any, opener: Callable[[Any, int], int]) -> Any:
    """Open as asked, with another descriptor under the same name."""
    return original(*args, **{**kwargs, "opener": opener})


def _opening_descriptor(original: Callable[..., int]) -> Callable[..., int]:
    access = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
    anew = os.O_TRUNC | os.O_EXCL | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)

    def open(_: object, /, path: Any, flags: Any, mode: Any = 0o777, *, dir_fd: Any = None) -> int:
        writes = bool(flags & access or flags & (os.O_CREAT | os.O_TRUNC))
        reads = flags & access != os.O_WRONLY and not flags & anew
        if values.MODE == "virtual":
            from . import overlay

            fresh, exclusive = bool(flags & os.O_TRUNC), bool(flags & os.O_EXCL)
            elsewhere = overlay.place(path, writes, reads, fresh=fresh, exclusive=exclusive, dir_fd=dir_fd)
            if elsewhere is not None:
                return original(elsewhere, flags, mode)
        whole = agents_path(path, dir_fd) if reads else None
        if whole is None:
            if writes and settings.RECORD:
                return int(_told_change(path, dir_fd, lambda: original(path, flags, mode, dir_fd=dir_fd)))
            return original(path, flags, mode, dir_fd=dir_fd)
        if writes and settings.RECORD:
            _told_change(path, dir_fd, lambda: None)
        fd: int = _read(path, whole, lambda: original(path, flags, mode), lambda fd: fd, lambda fd: fd, writes)
        return fd

    return open


def _told_change(path: Any, dir_fd: Any, change: Callable[[], Any]) -> Any:
    """Open a file to write in it, and tell how that went."""
    from . import changes

    return changes.telling_open(path, dir_fd, change)


def _read(
    given: Any,
    path: str,
    really: Callable[[], Any],
    fileno: Callable[[Any], int],
    serve: Callable[[int], Any],
    writes: bool,
) -> Any:
    """Open a file: really, and tell its content; or what the tape has for it."""
    name, told = name_of(path), {}  # type: str, dict[str, Any]
    if SERVES:
        from . import tapedvalues

        if tapedvalues.is_own("file", name, path):
            return really()
        taped = tapedvalues.take("file", name)
        told = {"taped": None if taped is None else taped["n"]}
        if taped is not None and not writes:
            if taped.get("error"):
                raise error_of(taped["error"], given)
            content = tapedvalues.content_of(taped)
            if content is not None:
                return serve(_dated(tapedvalues.file_of(content, name), taped))
    try:
        opened = really()
    except OSError as error:
        code = error_name(error)
        tell("file", name, told, lambda: {"error": code})
        raise
    try:
        fd = fileno(opened)
        status = _fstat(fd)
        if modes.S_ISREG(status.st_mode):
            data = {"mode": status.st_mode, "mtime": status.st_mtime_ns}
            emit("file", name, data=data, **read_file(fd, status.st_size), **told)
    except Exception:  # noqa: S110  # the agent has its file, whatever we could not tell of it
        pass
    return opened


def _dated(fd: int, taped: dict[str, Any]) -> int:
    moment = (taped.get("data") or {}).get("mtime")
    if isinstance(moment, int):
        try:
            _utime(fd, ns=(moment, moment))
        except (OSError, OverflowError):
            pass
    return fd
