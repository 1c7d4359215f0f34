"""The agent's changes of folders and files: told in a recording, and put into the overlay in a virtual replay.

In a recording it only tells which changes were made and whether they went well, because a folder that the recording
made is on the disk now, and making it again must go well nevertheless.
"""

from __future__ import annotations

import errno
import os
import sys

from . import hooks, layers, settings, values
from .layers import OPEN_TO_ALL, VIRTUAL
from .likeness import resemble, stand_for
from .overlay import outcome, seen, touches
from .values import absolute, emit, error_name, error_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_mkdir, _remove, _rmdir, _replace = os.mkdir, os.remove, os.rmdir, os.replace
_symlink, _truncate, _mkfifo = os.symlink, os.truncate, getattr(os, "mkfifo", None)


def install() -> None:
    """Replace the calls that change folders; in modes that let writes through, none."""
    if not (settings.RECORD or values.SERVES):
        return
    if VIRTUAL:
        layers.prepare()
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


def _one_path(name: str, original: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    def call(_: object, /, path: Any, *args: Any, dir_fd: Any = None, **kwargs: Any) -> Any:
        if dir_fd is not None:
            kwargs["dir_fd"] = dir_fd
        whole = layers.swallowed(path, dir_fd)
        if whole is None:
            return original(path, *args, **kwargs)
        if not VIRTUAL:
            if sys._getframe(1).f_code.co_name.startswith("_rmtree"):  # which is told of as a whole
                return original(path, *args, **kwargs)
            return _telling(name, whole, lambda: original(path, *args, **kwargs))
        named = {option: kwargs[option] for option in ("mode", "length") if option in kwargs}
        change(whole, path, outcome(whole, path), *args, **named)
        return None

    return call


def _two_paths(name: str, original: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    def call(_: object, /, src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
        from_fd, to_fd = kwargs.get("src_dir_fd"), kwargs.get("dst_dir_fd", kwargs.get("dir_fd"))
        whole = layers.swallowed(dst, to_fd)
        source = src if name == "symlink" else absolute(src, from_fd)
        if whole is None and name in ("rename", "replace") and VIRTUAL:
            whole = absolute(dst, to_fd) if layers.swallowed(src, from_fd) else None  # out of the overlay, into TMPDIR
        if whole is None or source is None:
            return original(src, dst, *args, **kwargs)
        if not VIRTUAL:
            return _telling(name, whole, lambda: original(src, dst, *args, **kwargs))
        change(whole, dst, outcome(whole, dst), source, src)
        return None

    return call


def _patch_rmtree(module: Any) -> None:
    """Removing a whole folder is one change: how it is done depends on what the system can do, and on what is there."""
    original = module.rmtree

    def rmtree(path: Any, *args: Any, **kwargs: Any) -> Any:
        whole = layers.swallowed(path, kwargs.get("dir_fd"))
        if whole is None:
            return original(path, *args, **kwargs)
        if not VIRTUAL:
            return _telling("rmtree", whole, lambda: original(path, *args, **kwargs))
        ignores = args[0] if args else kwargs.get("ignore_errors")
        try:
            known = outcome(whole, path)
        except OSError:
            if ignores:
                return None
            raise
        if not layers.is_here(whole) and not layers.was_below(whole, known):
            return original(path, *args, **kwargs)  # says so in its own way
        if layers.is_here(whole):
            layers.remove_tree(layers.here(whole))
        layers.mark("gone", whole)
        return None

    rmtree.avoids_symlink_attacks = original.avoids_symlink_attacks  # type: ignore[attr-defined]  # as it has
    module.rmtree = resemble(rmtree, original)


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
    whole = layers.swallowed(path, dir_fd)
    return change() if whole is None else _telling("open", whole, change)


def tell_change(name: str, whole: str, error: str | None = None) -> None:
    """Tell of a change that the agent made, or failed to make."""
    try:
        if values.counts(whole):
            emit("change", name_of(whole), data={"by": name}, **({"error": error} if error else {}))
    except Exception:  # noqa: S110  # the change is made, whatever we could not tell of it
        pass


def _remover(remove: Callable[[str], None]) -> Callable[..., None]:
    def removing(whole: str, given: Any, known: bool) -> None:
        if layers.is_here(whole):
            remove(layers.here(whole))
        elif not layers.was_below(whole, known):
            raise error_of("ENOENT", given)
        layers.mark("gone", whole)

    return removing


def _making(whole: str, given: Any, known: bool, mode: int = 0o777) -> None:
    if layers.is_here(whole) or (not known and layers.was_below(whole, False)):
        raise error_of("EEXIST", given)
    layers.need_folder(whole, given, known)
    layers.make(os.path.dirname(layers.here(whole)))
    _mkdir(layers.here(whole), mode | 0o700)
    layers.mark("gone", whole)  # what the disk has under this name was made by the recording


def _making_pipe(whole: str, given: Any, known: bool, mode: int = 0o666) -> None:
    layers.need_folder(whole, given, known)
    layers.make(os.path.dirname(layers.here(whole)))
    if _mkfifo is not None:
        _mkfifo(layers.here(whole), mode)


def _truncating(whole: str, given: Any, known: bool, length: int) -> None:
    _truncate(layers.raised(whole, given, known), length)


def _touching(whole: str, given: Any, known: bool, *_: Any, **__: Any) -> None:
    """Modes, owners and times are swallowed: the tape says what the agent sees of them."""
    if not layers.is_here(whole) and not layers.was_below(whole, known):
        raise error_of("ENOENT", given)


def _moving(whole: str, given: Any, known: bool, source: str, src: Any) -> None:
    layers.raise_tree(source, src)
    if whole.startswith(OPEN_TO_ALL):
        to = whole
    else:
        layers.need_folder(whole, given, known)
        to = layers.here(whole)
        layers.make(os.path.dirname(to))
    held = source if source.startswith(OPEN_TO_ALL) else layers.here(source)
    try:
        _replace(held, to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        layers.copy(held, to)
        _remove(held)
    if not source.startswith(OPEN_TO_ALL):
        layers.mark("gone", source)


def _linking(whole: str, given: Any, known: bool, _source: Any, target: Any) -> None:
    if layers.is_here(whole) or (not known and layers.was_below(whole, False)):
        raise error_of("EEXIST", given)
    layers.need_folder(whole, given, known)
    layers.make(os.path.dirname(layers.here(whole)))
    _symlink(target, layers.here(whole))


def _copying(whole: str, given: Any, known: bool, source: str, src: Any) -> None:
    layers.need_folder(whole, given, known)
    layers.make(os.path.dirname(layers.here(whole)))
    layers.copy(layers.raised(source, src, True) if not source.startswith(OPEN_TO_ALL) else source, layers.here(whole))


def _listing_attributes(original: Callable[..., Any]) -> Callable[..., Any]:
    def listxattr(_: object, /, path: Any = None, *, follow_symlinks: bool = True) -> Any:
        try:
            return original(path, follow_symlinks=follow_symlinks)
        except FileNotFoundError:  # shutil asks for them, of a file that only the tape has
            return []

    return listxattr


def _reading_link(original: Callable[..., Any]) -> Callable[..., Any]:
    def readlink(_: object, /, path: Any, *, dir_fd: Any = None) -> Any:
        whole = layers.swallowed(path, dir_fd)
        if whole is not None and touches(whole):
            return original(seen(whole, path))
        return original(path, dir_fd=dir_fd)

    return readlink
