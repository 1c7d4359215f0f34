"""What folders hold and what is known of paths: os.listdir, os.scandir, os.stat and os.lstat, and all that use them."""

from __future__ import annotations

import json
import os
import stat as modes
import sys

from . import settings, values
from .likeness import stand_for
from .values import LIMIT, SERVES, absolute, agents_path, emit, error_name, error_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_TIMES = (("atime", "st_atime"), ("mtime", "st_mtime"), ("ctime", "st_ctime"))
_NUMBERS = ("mode", "ino", "dev", "nlink", "uid", "gid", "size")
# What they ask of a path, and so what of it has to be the same again.
_ASKED = {
    **dict.fromkeys(("exists", "lexists", "isfile", "isdir", "islink", "is_file", "is_dir", "is_symlink"), "type"),
    **dict.fromkeys(("_path_exists", "_path_isfile", "_path_isdir"), "type"),
    "getsize": "size",
    "getmtime": "mtime",
}
# The folder of the sidecar files, which lies beside the tape while that is recorded, is nobody's business.
_OURS = os.path.split(os.path.abspath(settings.SIDECAR)) if settings.SIDECAR else (None, "")
_lstat_really = os.lstat
_PATHS = ("genericpath", "posixpath", "pathlib", "glob", "shutil")


def install() -> None:
    """Replace the calls that look into folders."""
    for name, make in (("listdir", _listdir), ("scandir", _scandir), ("stat", _stat), ("lstat", _lstat)):
        original = getattr(os, name)
        replacement = stand_for(make(original), original)
        setattr(os, name, replacement)
        for family in () if SERVES else (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if original in family:
                family.add(replacement)


def _virtual() -> Any:
    if values.MODE != "virtual":
        return None
    from . import overlay

    return overlay


def _listdir(original: Callable[..., Any]) -> Callable[..., Any]:
    def listdir(_: object, /, path: Any = None) -> Any:
        whole = agents_path("." if path is None else path)
        if whole is None:
            return _listed(original, path)
        name, told = name_of(whole), {}  # type: str, dict[str, Any]
        if SERVES:
            if _is_own("listing", name, whole):
                return original(path)
            taped, told = _taped("listing", name, path)
            if taped is not None:
                return [os.fsencode(item) for item in taped] if isinstance(path, bytes) else taped
        names = _telling("listing", name, told, lambda: _listed(original, path))
        _tell("listing", name, told, lambda: _packed([os.fsdecode(item) for item in names]))
        return names

    return listdir


def _listed(original: Callable[..., Any], path: Any) -> Any:
    """What is in a folder now, the changes of a virtual replay included."""
    overlay, whole = _virtual(), absolute("." if path is None else path)
    if whole == _OURS[0]:
        return [name for name in original(path) if os.fsdecode(name) != _OURS[1]]
    if overlay is None or whole is None:
        return original(path)
    names = overlay.listed(whole, path, lambda: original(path))
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def _scandir(original: Callable[..., Any]) -> Callable[..., Any]:
    def scandir(_: object, /, path: Any = None) -> Any:
        whole = agents_path("." if path is None else path)
        if whole is None:
            return original(path) if _virtual() is None else Scan(_entries(original, path))
        name, told = name_of(whole), {}  # type: str, dict[str, Any]
        if SERVES:
            if _is_own("scan", name, whole):
                return original(path)
            taped, told = _taped("scan", name, path)
            if taped is not None:
                for item in taped:
                    _scanned[os.path.join(whole, item[0])] = item[1:]
                return Scan([Entry(path, *item) for item in taped])
        entries = _telling("scan", name, told, lambda: _entries(original, path))
        _tell("scan", name, told, lambda: _scan_content(entries))
        return Scan(entries)

    return scandir


def _entries(original: Callable[..., Any], path: Any) -> list[Any]:
    """The entries of a folder now, the changes of a virtual replay included."""
    overlay, whole = _virtual(), absolute("." if path is None else path)
    if whole == _OURS[0]:
        return [entry for entry in _all_of(original(path)) if os.fsdecode(entry.name) != _OURS[1]]
    if overlay is None or whole is None:
        return _all_of(original(path))
    below: dict[str, Any] = {}

    def names() -> list[str]:
        below.update((os.fsdecode(entry.name), entry) for entry in _all_of(original(path)))
        return list(below)

    listed = overlay.listed(whole, path, names)
    touched = {name for name in listed if name not in below or overlay.touches(os.path.join(whole, name))}
    return [
        Entry(path, *_facts_of(overlay.seen(os.path.join(whole, n), n), n)) if n in touched else below[n]
        for n in listed
    ]


def _facts_of(place: str, name: str) -> list[Any]:
    status = _lstat_really(place)
    kind = "d" if modes.S_ISDIR(status.st_mode) else "f" if modes.S_ISREG(status.st_mode) else "l?"
    return [name, kind, status.st_mode, status.st_size, status.st_mtime_ns]


def _all_of(scan: Any) -> list[Any]:
    with scan:
        return list(scan)


def _taped(what: str, name: str, path: Any) -> tuple[Any, dict[str, Any]]:
    """What the tape has: the list, or None and what the line about the real one has to say. Raises the taped error."""
    from . import tapedvalues

    taped = tapedvalues.take(what, name)
    if taped is None:
        return None, {"taped": None}
    if taped.get("error"):
        raise error_of(taped["error"], path)
    content = tapedvalues.content_of(taped)
    return (None if content is None else json.loads(content)), {"taped": taped["n"]}


def _is_own(what: str, name: str, whole: str) -> bool:
    from . import tapedvalues

    return tapedvalues.is_own(what, name, whole)


def _telling(what: str, name: str, told: dict[str, Any], read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError as error:
        code = error_name(error)
        _tell(what, name, told, lambda: {"error": code})
        raise


def _tell(what: str, name: str, told: dict[str, Any], fields: Callable[[], dict[str, Any]]) -> None:
    try:
        emit(what, name, **fields(), **told)
    except Exception:  # noqa: S110  # the agent has what it asked for, whatever we could not tell of it
        pass


def _packed(items: list[Any]) -> dict[str, Any]:
    content = json.dumps(items, separators=(",", ":")).encode()
    if len(content) <= LIMIT:
        return {"content": content}
    return {"length": len(content), "digest": values.digest(content)}


def _scan_content(entries: list[Any]) -> dict[str, Any]:
    facts = _packed([_facts(entry) for entry in entries])
    return facts if "content" in facts else _packed([_facts(entry)[:2] for entry in entries])


def _facts(entry: Any) -> list[Any]:
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
            return _status_of_entry(self._facts)
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


# What served scans said of paths: shutil asks again, of what is no os.DirEntry.
_scanned: dict[str, list[Any]] = {}


def _status_of_entry(facts: Any) -> os.stat_result:
    mode, size, moment = facts
    return status_of({"mode": mode, "size": size, "mtime": moment, "atime": moment, "ctime": moment})


def status_of(data: dict[str, Any]) -> os.stat_result:
    """A stat_result with the taped facts."""
    times = [data.get(name, 0) for name, _ in _TIMES]
    whole = tuple(data.get(name, 0) for name in _NUMBERS) + tuple(time // 10**9 for time in times)
    fine: dict[str, Any] = {}
    for (_, field), time in zip(_TIMES, times):  # noqa: B905  # strict= is newer than 3.9
        fine[field], fine[field + "_ns"] = time // 10**9 + 1e-9 * (time % 10**9), time  # as C has it
    return os.stat_result(whole, fine)


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
    overlay = _virtual()
    whole = None if overlay is None else absolute(path, dir_fd)
    return overlay.seen(whole, path) if whole is not None and overlay.touches(whole) else None


def _known(path: Any, whole: str, link: bool, really: Callable[[Any], Any]) -> Any:
    name, told = name_of(whole), {}  # type: str, dict[str, Any]
    asked = _asked()
    if SERVES:
        from . import tapedvalues

        if tapedvalues.is_own("stat", name, whole):
            return really(path)
        taped = tapedvalues.take("stat", name)
        overlay = _virtual()
        if overlay is not None and overlay.touches(whole):
            return _newer(really(overlay.seen(whole, path)), taped)
        if taped is not None:
            if taped.get("error"):
                raise error_of(taped["error"], path)
            return status_of(taped.get("data") or {})
        kind, *facts = _scanned.get(whole, ["?"])
        if len(facts) == 3 and (link or not kind.startswith("l")):
            return _status_of_entry(facts)
        told = {"taped": None}
    status = _telling("stat", name, told, lambda: really(path))
    _tell("stat", name, told, lambda: {"data": _data_of(status, asked, link)})
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
    data.update((name, getattr(status, "st_" + name)) for name in _NUMBERS)
    data.update((name, getattr(status, field + "_ns")) for name, field in _TIMES)
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
