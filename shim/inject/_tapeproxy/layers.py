"""The layers of a virtual replay: what this run wrote is `here`, what it removed is `gone`, all else is `below`.

`below` is on the tape, or on the disk, which stays as it is. Knows the folder of the run that is laid over it.
"""

from __future__ import annotations

import os
import stat as modes

from . import settings, values
from .values import absolute, error_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VIRTUAL = values.SERVES and values.MODE == "virtual"
_ROOT = os.environ.get("TAPEPROXY_IO_OVERLAY", "")
_FILES = os.path.join(_ROOT, "files")
_MARKS = os.path.join(_ROOT, "marks")
OPEN_TO_ALL = tuple(
    os.path.abspath(folder) + os.sep
    for folder in (os.environ.get("TMPDIR", ""), "/dev", "/proc", "/sys", settings.SIDECAR, values.TAPED, _ROOT)
    if folder
)
"""Beginnings of paths that are written to and read as they are."""
_BLOCK = 1 << 20

_lstat, _stat, _open, _close, _read, _write = os.lstat, os.stat, os.open, os.close, os.read, os.write
_mkdir, _remove, _rmdir, _listdir = os.mkdir, os.remove, os.rmdir, os.listdir


def prepare() -> None:
    """Make the folders of the run."""
    for folder in (_FILES, _MARKS):
        make(folder)


def swallowed(path: Any, dir_fd: Any = None) -> str | None:
    """The absolute form of a path whose changes are swallowed; None: it is open to all, or no path."""
    whole = absolute(path, dir_fd)
    if whole is None or whole.startswith(OPEN_TO_ALL):
        return None
    return whole


def here(whole: str) -> str:
    """Where what this run has made under a path lies."""
    return _FILES + whole


def is_here(whole: str) -> bool:
    """Whether this run has made something there."""
    return _exists(here(whole))


def is_gone(whole: str) -> bool:
    """Whether the path, or a folder that it was in, was removed; also true of what was made anew since."""
    while len(whole) > 1:
        if marked("gone", whole):
            return True
        whole = os.path.dirname(whole)
    return False


def was_below(whole: str, known: bool) -> bool:
    """Whether there was something, on the tape (`known`) or the disk, that this run has not removed."""
    return not is_gone(whole) and (known or _exists(whole))


def _exists(path: str) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _mark_of(kind: str, whole: str) -> str:
    return os.path.join(_MARKS, f"{kind}-{values.digest(os.fsencode(whole))}")


def mark(kind: str, whole: str) -> None:
    """Mark a path: `gone`, or `mixed`, which is here with a content from below."""
    _close(_open(_mark_of(kind, whole), os.O_CREAT | os.O_WRONLY, 0o600))


def marked(kind: str, whole: str) -> bool:
    """Whether a path is marked so."""
    return _exists(_mark_of(kind, whole))


def need_folder(whole: str, given: Any, known: bool) -> None:
    """Raise FileNotFoundError where there is no folder for this path, unless the tape says that there is."""
    folder = os.path.dirname(whole)
    if not known and not is_here(folder) and not was_below(folder, False):
        raise error_of("ENOENT", given)


def make(folder: str) -> None:
    """Make a folder, and those that it is in, where there is none."""
    try:
        _mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make(os.path.dirname(folder))
        make(folder)


def raised(whole: str, given: Any, known: bool) -> str:
    """The path here of a file that is here or below. Raises FileNotFoundError."""
    if not is_here(whole):
        if not was_below(whole, known):
            raise error_of("ENOENT", given)
        make(os.path.dirname(here(whole)))
        raise_file(whole)
    return here(whole)


def raise_file(whole: str) -> None:
    """Bring a file here: as the tape has it when it was last read, or as the disk has it. Where there is none, none."""
    from . import tapedvalues

    content = tapedvalues.any_content("file", name_of(whole))
    if content is not None:
        store(here(whole), content)
    else:
        try:
            regular = modes.S_ISREG(_stat(whole).st_mode)
        except OSError:
            return
        if not regular:
            return
        copy(whole, here(whole))
    mark("mixed", whole)


def raise_tree(source: str, given: Any) -> None:
    """Bring a file or folder here before it moves."""
    if source.startswith(OPEN_TO_ALL) or is_here(source):
        return
    try:
        is_folder = not is_gone(source) and modes.S_ISDIR(_lstat(source).st_mode)
    except OSError:
        is_folder = False
    if not is_folder:
        raised(source, given, True)
        if not is_here(source):
            raise error_of("ENOENT", given)
        return
    make(here(source))
    for name in _listdir(source):
        inner = os.path.join(source, name)
        if not marked("gone", inner):
            raise_tree(inner, given)


def remove_tree(folder: str) -> None:
    """Remove a folder and all that is in it."""
    for name in _listdir(folder):
        inner = os.path.join(folder, name)
        if modes.S_ISDIR(_lstat(inner).st_mode):
            remove_tree(inner)
        else:
            _remove(inner)
    _rmdir(folder)


def store(path: str, content: bytes) -> None:
    """Write a file anew."""
    fd = _open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[_write(fd, view) :]
    finally:
        _close(fd)


def copy(path: str, to: str) -> None:
    """Copy the content of a file."""
    source = _open(path, os.O_RDONLY)
    try:
        target = _open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            while True:
                data = _read(source, _BLOCK)
                if not data:
                    break
                while data:
                    data = data[_write(target, data) :]
        finally:
            _close(target)
    finally:
        _close(source)
