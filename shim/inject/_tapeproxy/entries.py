"""Entries of folders: what is told of them, and what stands for them when they come from the tape. Asks no folder."""

from __future__ import annotations

import os
import stat as modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TIMES = (("atime", "st_atime"), ("mtime", "st_mtime"), ("ctime", "st_ctime"))
NUMBERS = ("mode", "ino", "dev", "nlink", "uid", "gid", "size")

_lstat_really = os.lstat


class Scan:
    """What os.scandir returns: an iterator over entries that can be closed."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give out nothing more."""
        self._entries = iter(())


class Entry:
    """An os.DirEntry from the tape."""

    __slots__ = ("_facts", "_kind", "name", "path")

    def __init__(self, folder: Any, name: str, kind: str = "?", *facts: int) -> None:
        self._kind = kind
        self._facts = facts
        given: Any = "." if folder is None else os.fspath(folder)
        self.name: Any = os.fsencode(name) if isinstance(given, bytes) else name
        self.path: Any = self.name if folder is None else os.path.join(given, self.name)

    def is_symlink(self) -> bool:
        return self._kind.startswith("l")

    def is_junction(self) -> bool:
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._kind == "d" or (follow_symlinks and self._kind == "ld")

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._kind == "f" or (follow_symlinks and self._kind == "lf")

    def inode(self) -> int:
        return int(self.stat(follow_symlinks=False).st_ino)

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        if len(self._facts) == 3 and not (follow_symlinks and self.is_symlink()):
            return status_of_entry(self._facts)
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


def facts_at(place: str, name: str) -> list[Any]:
    """What is known of what lies at a path, as an entry of this name."""
    status = _lstat_really(place)
    kind = "d" if modes.S_ISDIR(status.st_mode) else "f" if modes.S_ISREG(status.st_mode) else "l?"
    return [name, kind, status.st_mode, status.st_size, status.st_mtime_ns]


def facts_of(entry: Any) -> list[Any]:
    """What is told of an entry: `[name, kind, mode, size, mtime]`, the last three if they could be had."""
    out: list[Any] = [os.fsdecode(entry.name), _kind(entry)]
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return out
    return [*out, status.st_mode, status.st_size, status.st_mtime_ns]


def _kind(entry: Any) -> str:
    try:
        kind = "d" if entry.is_dir() else "f" if entry.is_file() else "?"
        return "l" + kind if entry.is_symlink() else kind
    except OSError:
        return "?"


def status_of_entry(facts: Any) -> os.stat_result:
    """A stat_result with what an entry has of it."""
    mode, size, moment = facts
    return status_of({"mode": mode, "size": size, "mtime": moment, "atime": moment, "ctime": moment})


def status_of(data: dict[str, Any]) -> os.stat_result:
    """A stat_result with the taped facts."""
    times = [data.get(name, 0) for name, _ in TIMES]
    whole = tuple(data.get(name, 0) for name in NUMBERS) + tuple(time // 10**9 for time in times)
    fine: dict[str, Any] = {}
    for (_, field), time in zip(TIMES, times):  # noqa: B905  # strict= is newer than 3.9
        fine[field], fine[field + "_ns"] = time // 10**9 + 1e-9 * (time % 10**9), time  # as C has it
    return os.stat_result(whole, fine)
