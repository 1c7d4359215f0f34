"""Whose line of code led here. Knows which files are the user's own, and no more of them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes longer to load than all of this
    from types import FrameType

_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_DEEPEST = 400  # frames that are looked at
_PLUMBING = ("_frozen_importlib", "_frozen_importlib_external", "os", "_collections_abc", "collections.abc", "site")
_owners: dict[str, str] = {}
more_of_ours: list[str] = []
"""Other folders whose frames are ours, each with a separator at its end."""


def owner(file: str) -> str:
    """Whose a source file is: `user`, `library`, `stdlib` or `ours`."""
    found = _owners.get(file)
    if found is None:
        if file.startswith((_OURS, *more_of_ours)):
            found = "ours"
        elif any(part in file for part in _INSTALLED):
            found = "library"
        else:
            found = "stdlib" if file.startswith((_STDLIB, "<frozen ")) else "user"
        _owners[file] = found
    return found


def calling_line() -> tuple[str, bool]:
    """`FILE:LINE in FUNCTION` of the innermost frame of the user's own, and whether there is one.

    Where there is none (a look-up in a worker thread, a task of a library's), the innermost library's frame.
    """
    return _find(sys._getframe(1))


def line_of(frame: FrameType | None) -> str:
    """The same of another frame than the caller's; empty where there is none."""
    return _find(frame)[0]


def _find(frame: FrameType | None) -> tuple[str, bool]:
    library: FrameType | None = None
    innermost: FrameType | None = None
    while frame is not None:
        whose = owner(frame.f_code.co_filename)
        if whose == "user":
            return _place(frame), True
        if whose == "library":
            library = library or frame
        elif whose == "stdlib":
            innermost = innermost or frame
        frame = frame.f_back
    nearest = library or innermost
    return (_place(nearest) if nearest else ""), False


def stack_key(most: int = 4) -> list[object]:
    """What `user_lines` depends on, for less: the lines of the user's, and who is between them and here."""
    key: list[object] = []
    found = 0
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None or found == most:
            break
        code = frame.f_code
        whose = _owners.get(code.co_filename) or owner(code.co_filename)
        if whose == "user":
            key += code, frame.f_lineno
            found += 1
        elif not found and whose != "ours":
            key.append(code)
        frame = frame.f_back
    return key


def user_lines(most: int = 4, libraries: int = 3) -> tuple[list[str], list[str]]:
    """`most` innermost lines of the user's own, and the modules of libraries between the first of them and here."""
    lines: list[str] = []
    modules: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None or len(lines) == most:
            break
        whose = owner(frame.f_code.co_filename)
        if whose == "user":
            lines.append(_place(frame))
        elif whose != "ours" and not lines and len(modules) < libraries:
            name = str(frame.f_globals.get("__name__", "?"))
            if name not in modules and name not in _PLUMBING:
                modules.append(name)
        frame = frame.f_back
    return lines, modules


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
