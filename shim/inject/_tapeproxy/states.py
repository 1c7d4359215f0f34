"""What is known of paths: os.stat and os.lstat, and all that use them."""

from __future__ import annotations

import os
import stat as modes
import sys

from . import overlay
from .entries import NUMBERS, TIMES, status_of, status_of_entry
from .layers import VIRTUAL
from .likeness import stand_for
from .values import SERVES, absolute, agents_path, error_of, name_of, tell, telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What they ask of a path, and so what of it has to be the same again.
_ASKED = {
    **dict.fromkeys(("exists", "lexists", "isfile", "isdir", "islink", "is_file", "is_dir", "is_symlink"), "type"),
    **dict.fromkeys(("_path_exists", "_path_isfile", "_path_isdir"), "type"),
    "getsize": "size",
    "getmtime": "mtime",
}
_PATHS = ("genericpath", "posixpath", "pathlib", "glob", "shutil")
scanned: dict[str, list[Any]] = {}
"""What served scans said of paths: shutil asks again, of what is no os.DirEntry."""


def install() -> None:
    """Replace the calls that look at paths."""
    replace({"stat": _stat, "lstat": _lstat})


def replace(calls: dict[str, Callable[[Any], Callable[..., Any]]]) -> None:
    """Replace calls of `os`, by name; what they support is still to be seen where they are not served."""
    for name, make in calls.items():
        original = getattr(os, name)
        replacement = stand_for(make(original), original)
        setattr(os, name, replacement)
        for family in () if SERVES else (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if original in family:
                family.add(replacement)


def _stat(original: Callable[..., Any]) -> Callable[..., Any]:
    def stat(_: object, /, path: Any, *, dir_fd: Any = None, follow_symlinks: Any = True) -> Any:
        whole = agents_path(path, dir_fd)
        if whole is None:
            there = _made(path, dir_fd)
            if there is not None:
                return original(there, follow_symlinks=follow_symlinks)
            return original(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        really = lambda p: original(p, dir_fd=dir_fd, follow_symlinks=follow_symlinks)  # noqa: E731
        return _known(path, whole, not follow_symlinks, really)

    return stat


def _lstat(original: Callable[..., Any]) -> Callable[..., Any]:
    def lstat(_: object, /, path: Any, *, dir_fd: Any = None) -> Any:
        whole = agents_path(path, dir_fd)
        if whole is None:
            there = _made(path, dir_fd)
            return original(path, dir_fd=dir_fd) if there is None else original(there)
        return _known(path, whole, True, lambda p: original(p, dir_fd=dir_fd))

    return lstat


def _made(path: Any, dir_fd: Any) -> str | None:
    """Where a virtual replay has what it has made under this path; None: as it would be. Raises FileNotFoundError."""
    whole = absolute(path, dir_fd) if VIRTUAL else None
    return overlay.seen(whole, path) if whole is not None and overlay.touches(whole) else None


def _known(path: Any, whole: str, link: bool, really: Callable[[Any], Any]) -> Any:
    name, told = name_of(whole), {}  # type: str, dict[str, Any]
    asked = _asked()
    if SERVES:
        from . import tapedvalues

        if tapedvalues.is_own("stat", name, whole):
            return really(path)
        taped = tapedvalues.take("stat", name)
        if VIRTUAL and overlay.touches(whole):
            return _newer(really(overlay.seen(whole, path)), taped)
        if taped is not None:
            if taped.get("error"):
                raise error_of(taped["error"], path)
            return status_of(taped.get("data") or {})
        kind, *facts = scanned.get(whole, ["?"])
        if len(facts) == 3 and (link or not kind.startswith("l")):
            return status_of_entry(facts)
        told = {"taped": None}
    status = telling("stat", name, told, lambda: really(path))
    tell("stat", name, told, lambda: {"data": _data_of(status, asked, link)})
    return status


def _newer(status: Any, taped: dict[str, Any] | None) -> Any:
    """What this run has made, with the times of the recording if it made the same."""
    data = {} if taped is None else taped.get("data") or {}
    same = data.get("mode", 0) >> 12 == status.st_mode >> 12
    if same and (modes.S_ISDIR(status.st_mode) or data.get("size") == status.st_size):
        return status_of(data)
    return status


def _data_of(status: Any, asked: str, link: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"asked": asked}
    if link:
        data["lstat"] = True
    data.update((name, getattr(status, "st_" + name)) for name in NUMBERS)
    data.update((name, getattr(status, field + "_ns")) for name, field in TIMES)
    return data


def _asked() -> str:
    """What the call was for, told by who made it: os.path.exists and its like ask for less than all."""
    frame: Any = sys._getframe(3)  # past _known and the replacement, both called from Python
    for _ in range(3):
        if frame is None or (frame.f_globals.get("__name__") or "").partition(".")[0] not in _PATHS:
            break
        asked = _ASKED.get(frame.f_code.co_name)
        if asked is not None:
            return asked
        frame = frame.f_back
    return "all"
