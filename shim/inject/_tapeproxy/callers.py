"""Whose line of code led here. Knows which files are the user's own, and no more of them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes longer to load than all of this
    from types import FrameType

_OURS = os.path.dirname(__file__) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def calling_line() -> tuple[str, bool]:
    """`FILE:LINE in FUNCTION` of the innermost frame of the user's own, and whether there is one.

    Where there is none (a look-up in a worker thread, a task of a library's), the innermost library's frame.
    """
    frame: FrameType | None = sys._getframe(1)
    library: FrameType | None = None
    innermost: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OURS):
            pass
        elif any(part in file for part in _INSTALLED):
            library = library or frame
        elif file.startswith((_STDLIB, "<frozen ")):
            innermost = innermost or frame
        else:
            return _place(frame), True
        frame = frame.f_back
    nearest = library or innermost
    return (_place(nearest) if nearest else ""), False


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
