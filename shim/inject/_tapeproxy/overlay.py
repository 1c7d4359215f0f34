"""Where a virtual replay puts what the agent writes: a folder of the run, laid over the disk, which stays as it is.

Knows the layers: what this run wrote is `here`, what it removed is `gone`, and all else is `below`: on the tape, or on
the disk. In a recording it only tells which changes the agent made and whether they went well, because a folder that
the recording made is on the disk now, and making it again must go well nevertheless.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import sys

from . import hooks, settings, values
from .likeness import resemble, stand_for
from .values import absolute, emit, error_name, error_of, is_agents, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VIRTUAL = values.SERVES and values.MODE == "virtual"
_ROOT = os.environ.get("TAPEPROXY_IO_OVERLAY", "")
_FILES = os.path.join(_ROOT, "files")
_MARKS = os.path.join(_ROOT, "marks")
_OPEN_TO_ALL = tuple(
    os.path.abspath(folder) + os.sep
    for folder in (os.environ.get("TMPDIR", ""), "/dev", "/proc", "/sys", settings.SIDECAR, values.TAPED, _ROOT)
    if folder
)
_BLOCK = 1 << 20

_lstat, _stat, _open, _close, _read, _write = os.lstat, os.stat, os.open, os.close, os.read, os.write
_mkdir, _remove, _rmdir, _replace, _scandir = os.mkdir, os.remove, os.rmdir, os.replace, os.scandir
_symlink, _readlink, _truncate, _chmod, _utime = os.symlink, os.readlink, os.truncate, os.chmod, os.utime
_listdir, _mkfifo = os.listdir, getattr(os, "mkfifo", None)


def install() -> None:
    """Replace the calls that change folders; in modes that let writes through, none."""
    if not (settings.RECORD or values.SERVES):
        return
    if VIRTUAL:
        for folder in (_FILES, _MARKS):
            _make(folder)
    if settings.RECORD or VIRTUAL:
        _replace_changes()
        hooks.on_import("shutil", _patch_rmtree)
    if values.SERVES and hasattr(os, "listxattr"):
        os.listxattr = stand_for(_listing_attributes(os.listxattr), os.listxattr)
    if VIRTUAL:
        os.readlink = stand_for(_reading_link(os.readlink), os.readlink)


def _replace_changes() -> None:
    changes: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(("remove", "unlink"), _remover(_remove)),
        **dict.fromkeys(("chmod", "chown", "lchown", "utime"), _touching),
        **dict.fromkeys(("rename", "replace"), _moving),
        "rmdir": _remover(_rmdir),
        "mkdir": _making,
        "mkfifo": _making_pipe,
        "truncate": _truncating,
        "symlink": _linking,
        "link": _copying,
    }
    for name, change in changes.items():
        original = getattr(os, name, None)
        if original is None:
            continue
        make = _two_paths if name in ("rename", "replace", "symlink", "link") else _one_path
        replacement = stand_for(make(name, original, change), original)
        setattr(os, name, replacement)
        for family in () if VIRTUAL else (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if original in family:
                family.add(replacement)


# --- the calls ---


def _one_path(name: str, original: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    def call(_: object, /, path: Any, *args: Any, dir_fd: Any = None, **kwargs: Any) -> Any:
        if dir_fd is not None:
            kwargs["dir_fd"] = dir_fd
        whole = _swallowed(path, dir_fd)
        if whole is None:
            return original(path, *args, **kwargs)
        if not VIRTUAL:
            if sys._getframe(1).f_code.co_name.startswith("_rmtree"):  # which is told of as a whole
                return original(path, *args, **kwargs)
            return _telling(name, whole, lambda: original(path, *args, **kwargs))
        named = {option: kwargs[option] for option in ("mode", "length") if option in kwargs}
        change(whole, path, _outcome(whole, path), *args, **named)
        return None

    return call


def _two_paths(name: str, original: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    def call(_: object, /, src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
        from_fd, to_fd = kwargs.get("src_dir_fd"), kwargs.get("dst_dir_fd", kwargs.get("dir_fd"))
        whole = _swallowed(dst, to_fd)
        source = src if name == "symlink" else absolute(src, from_fd)
        if whole is None and name in ("rename", "replace") and VIRTUAL:
            whole = absolute(dst, to_fd) if _swallowed(src, from_fd) else None  # out of the overlay, into TMPDIR
        if whole is None or source is None:
            return original(src, dst, *args, **kwargs)
        if not VIRTUAL:
            return _telling(name, whole, lambda: original(src, dst, *args, **kwargs))
        change(whole, dst, _outcome(whole, dst), source, src)
        return None

    return call


def _patch_rmtree(module: Any) -> None:
    """Removing a whole folder is one change: how it is done depends on what the system can do, and on what is there."""
    original = module.rmtree

    def rmtree(path: Any, *args: Any, **kwargs: Any) -> Any:
        whole = _swallowed(path, kwargs.get("dir_fd"))
        if whole is None:
            return original(path, *args, **kwargs)
        if not VIRTUAL:
            return _telling("rmtree", whole, lambda: original(path, *args, **kwargs))
        ignores = args[0] if args else kwargs.get("ignore_errors")
        try:
            known = _outcome(whole, path)
        except OSError:
            if ignores:
                return None
            raise
        if not _is_here(whole) and not _was_below(whole, known):
            return original(path, *args, **kwargs)  # says so in its own way
        if _is_here(whole):
            _remove_tree(_here(whole))
        _mark("gone", whole)
        return None

    rmtree.avoids_symlink_attacks = original.avoids_symlink_attacks  # type: ignore[attr-defined]  # as it has
    module.rmtree = resemble(rmtree, original)


def _remove_tree(folder: str) -> None:
    for name in _listdir(folder):
        inner = os.path.join(folder, name)
        if modes.S_ISDIR(_lstat(inner).st_mode):
            _remove_tree(inner)
        else:
            _remove(inner)
    _rmdir(folder)


def _telling(name: str, whole: str, change: Callable[[], Any]) -> Any:
    """Make a change and tell how it went."""
    try:
        result = change()
    except OSError as error:
        tell_change(name, whole, error_name(error))
        raise
    tell_change(name, whole)
    return result


def telling_open(path: Any, dir_fd: Any, change: Callable[[], Any]) -> Any:
    """Open a file to write in it, and tell how that went."""
    whole = _swallowed(path, dir_fd)
    return change() if whole is None else _telling("open", whole, change)


def tell_change(name: str, whole: str, error: str | None = None) -> None:
    """Tell of a change that the agent made, or failed to make."""
    try:
        if values.counts(whole):
            emit("change", name_of(whole), data={"by": name}, **({"error": error} if error else {}))
    except Exception:  # noqa: S110  # the change is made, whatever we could not tell of it
        pass


def _outcome(whole: str, given: Any) -> bool:
    """Whether the tape says that the change goes well; False where it says nothing. Raises the taped error."""
    from . import tapedvalues

    taped = tapedvalues.take("change", name_of(whole))
    if taped is not None and taped.get("error"):
        raise error_of(taped["error"], given)
    return taped is not None


def _remover(remove: Callable[[str], None]) -> Callable[..., None]:
    def removing(whole: str, given: Any, known: bool) -> None:
        if _is_here(whole):
            remove(_here(whole))
        elif not _was_below(whole, known):
            raise error_of("ENOENT", given)
        _mark("gone", whole)

    return removing


def _making(whole: str, given: Any, known: bool, mode: int = 0o777) -> None:
    if _is_here(whole) or (not known and _was_below(whole, False)):
        raise error_of("EEXIST", given)
    _need_folder(whole, given, known)
    _make(os.path.dirname(_here(whole)))
    _mkdir(_here(whole), mode | 0o700)
    _mark("gone", whole)  # what the disk has under this name was made by the recording


def _making_pipe(whole: str, given: Any, known: bool, mode: int = 0o666) -> None:
    _need_folder(whole, given, known)
    _make(os.path.dirname(_here(whole)))
    if _mkfifo is not None:
        _mkfifo(_here(whole), mode)


def _truncating(whole: str, given: Any, known: bool, length: int) -> None:
    _truncate(_raised(whole, given, known), length)


def _touching(whole: str, given: Any, known: bool, *_: Any, **__: Any) -> None:
    """Modes, owners and times are swallowed: the tape says what the agent sees of them."""
    if not _is_here(whole) and not _was_below(whole, known):
        raise error_of("ENOENT", given)


def _moving(whole: str, given: Any, known: bool, source: str, src: Any) -> None:
    _raise_tree(source, src)
    if whole.startswith(_OPEN_TO_ALL):
        to = whole
    else:
        _need_folder(whole, given, known)
        to = _here(whole)
        _make(os.path.dirname(to))
    held = source if source.startswith(_OPEN_TO_ALL) else _here(source)
    try:
        _replace(held, to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(held, to)
        _remove(held)
    if not source.startswith(_OPEN_TO_ALL):
        _mark("gone", source)


def _linking(whole: str, given: Any, known: bool, _source: Any, target: Any) -> None:
    if _is_here(whole) or (not known and _was_below(whole, False)):
        raise error_of("EEXIST", given)
    _need_folder(whole, given, known)
    _make(os.path.dirname(_here(whole)))
    _symlink(target, _here(whole))


def _copying(whole: str, given: Any, known: bool, source: str, src: Any) -> None:
    _need_folder(whole, given, known)
    _make(os.path.dirname(_here(whole)))
    _copy(_raised(source, src, True) if not source.startswith(_OPEN_TO_ALL) else source, _here(whole))


def _listing_attributes(original: Callable[..., Any]) -> Callable[..., Any]:
    def listxattr(_: object, /, path: Any = None, *, follow_symlinks: bool = True) -> Any:
        try:
            return original(path, follow_symlinks=follow_symlinks)
        except FileNotFoundError:  # shutil asks for them, of a file that only the tape has
            return []

    return listxattr


def _reading_link(original: Callable[..., Any]) -> Callable[..., Any]:
    def readlink(_: object, /, path: Any, *, dir_fd: Any = None) -> Any:
        whole = _swallowed(path, dir_fd)
        if whole is not None and touches(whole):
            return original(seen(whole, path))
        return original(path, dir_fd=dir_fd)

    return readlink


# --- what the hooks of reads ask ---


def place(
    path: Any, writes: bool, reads: bool, *, fresh: bool = False, exclusive: bool = False, dir_fd: Any = None
) -> str | None:
    """The path to open in place of this one; None: as it would be. Raises what opening it raises."""
    whole = _swallowed(path, dir_fd)
    if whole is None:
        return None
    if not writes:
        return _to_read(whole, path)
    known = _outcome(whole, path)
    taped = _next_read(whole, path) if reads and is_agents(2) else None
    if _is_here(whole):
        if exclusive:
            raise error_of("EEXIST", path)
        return _here(whole)
    if exclusive and not known and _was_below(whole, False):
        raise error_of("EEXIST", path)
    _need_folder(whole, path, known)
    _make(os.path.dirname(_here(whole)))
    if taped is not None:
        _store(_here(whole), taped)
        _mark("mixed", whole)
    elif not fresh and not exclusive and not _is_gone(whole):
        _raise_file(whole)
    return _here(whole)


def _to_read(whole: str, given: Any) -> str | None:
    if _is_here(whole):
        content = _next_read(whole, given) if is_agents(3) else None
        if content is not None and _marked("mixed", whole):
            _store(_here(whole), content)  # what was below it then is known better than what is below it now
        return _here(whole)
    if _is_gone(whole):
        raise error_of("ENOENT", given)
    return None


def _next_read(whole: str, given: Any) -> bytes | None:
    """What the tape has for this read; None where there is nothing, or a digest. Raises the taped error."""
    from . import tapedvalues

    taped = tapedvalues.take("file", name_of(whole))
    if taped is None:
        return None
    if taped.get("error"):
        raise error_of(taped["error"], given)
    return tapedvalues.content_of(taped)


def touches(whole: str) -> bool:
    """Whether this run has made or removed this path."""
    return not whole.startswith(_OPEN_TO_ALL) and (_is_here(whole) or _is_gone(whole))


def seen(whole: str, given: Any) -> str:
    """The path of what this run has made there. Raises FileNotFoundError."""
    if not _is_here(whole):
        raise error_of("ENOENT", given)
    return _here(whole)


def listed(whole: str, given: Any, below: Callable[[], list[Any]]) -> list[str]:
    """The names in a folder: those that `below` gives, without what was removed, and what this run has made."""
    names: list[str] = []
    if not _is_gone(whole):
        try:
            names = [os.fsdecode(name) for name in below()]
        except FileNotFoundError:
            if not _is_here(whole):
                raise
    elif not _is_here(whole):
        raise error_of("ENOENT", given)
    own = _listdir(_here(whole)) if _is_here(whole) else []
    kept = [name for name in names if name in own or not _marked("gone", os.path.join(whole, name))]
    return kept + [name for name in own if name not in names]


# --- the layers ---


def _swallowed(path: Any, dir_fd: Any = None) -> str | None:
    whole = absolute(path, dir_fd)
    if whole is None or whole.startswith(_OPEN_TO_ALL):
        return None
    return whole


def _here(whole: str) -> str:
    return _FILES + whole


def _is_here(whole: str) -> bool:
    return _exists(_here(whole))


def _is_gone(whole: str) -> bool:
    """Whether the path, or a folder that it was in, was removed; also true of what was made anew since."""
    while len(whole) > 1:
        if _marked("gone", whole):
            return True
        whole = os.path.dirname(whole)
    return False


def _was_below(whole: str, known: bool) -> bool:
    return not _is_gone(whole) and (known or _exists(whole))


def _exists(path: str) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _mark_of(kind: str, whole: str) -> str:
    return os.path.join(_MARKS, f"{kind}-{values.digest(os.fsencode(whole))}")


def _mark(kind: str, whole: str) -> None:
    _close(_open(_mark_of(kind, whole), os.O_CREAT | os.O_WRONLY, 0o600))


def _marked(kind: str, whole: str) -> bool:
    return _exists(_mark_of(kind, whole))


def _need_folder(whole: str, given: Any, known: bool) -> None:
    """Raise FileNotFoundError where there is no folder for this path, unless the tape says that there is."""
    folder = os.path.dirname(whole)
    if not known and not _is_here(folder) and not _was_below(folder, False):
        raise error_of("ENOENT", given)


def _make(folder: str) -> None:
    try:
        _mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        _make(os.path.dirname(folder))
        _make(folder)


def _raised(whole: str, given: Any, known: bool) -> str:
    """The path here of a file that is here or below. Raises FileNotFoundError."""
    if not _is_here(whole):
        if not _was_below(whole, known):
            raise error_of("ENOENT", given)
        _make(os.path.dirname(_here(whole)))
        _raise_file(whole)
    return _here(whole)


def _raise_file(whole: str) -> None:
    """Bring a file here: as the tape has it when it was last read, or as the disk has it. Where there is none, none."""
    from . import tapedvalues

    content = tapedvalues.any_content("file", name_of(whole))
    if content is not None:
        _store(_here(whole), content)
    else:
        try:
            regular = modes.S_ISREG(_stat(whole).st_mode)
        except OSError:
            return
        if not regular:
            return
        _copy(whole, _here(whole))
    _mark("mixed", whole)


def _raise_tree(source: str, given: Any) -> None:
    """Bring a file or folder here before it moves."""
    if source.startswith(_OPEN_TO_ALL) or _is_here(source):
        return
    try:
        is_folder = not _is_gone(source) and modes.S_ISDIR(_lstat(source).st_mode)
    except OSError:
        is_folder = False
    if not is_folder:
        _raised(source, given, True)
        if not _is_here(source):
            raise error_of("ENOENT", given)
        return
    _make(_here(source))
    for name in _listdir(source):
        inner = os.path.join(source, name)
        if not _marked("gone", inner):
            _raise_tree(inner, given)


def _store(path: str, content: bytes) -> None:
    fd = _open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[_write(fd, view) :]
    finally:
        _close(fd)


def _copy(path: str, to: str) -> None:
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
