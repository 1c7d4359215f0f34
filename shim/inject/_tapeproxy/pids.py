"""The process's own number, and its parent's: taped, and the same again in a replay for all but the interpreter.

Knows who asks: the standard library's own code (multiprocessing, subprocess, tempfile) gets the real one, and signals
that the agent sends to a number from the tape go to the process that has it now.
"""

from __future__ import annotations

import os
import sys

from . import lanes, settings, values
from .likeness import stand_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_STDLIB = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_OURS = os.path.dirname(__file__) + os.sep
# These look the process up by its number.
_LOOK_UP = ("psutil", "loky", "joblib", "billiard", "celery", "gunicorn", "uvicorn", "ray", "torch", "setproctitle")
_TELLS = ("logging",)  # of the standard library's, those who show the number to the agent's readers

_getpid = os.getpid
_known: dict[tuple[str, int], int] = {}  # (call, real process) -> what the agent is told
_real: dict[int, int] = {}  # what the agent was told -> the real one


def install() -> None:
    """Replace os.getpid and os.getppid, and the calls that take a process's number."""
    for name in ("getpid", "getppid"):
        original = getattr(os, name)
        setattr(os, name, stand_for(_asking(name, original), original))
    if settings.REPLAY:
        for name in ("kill", "getpgid", "getsid", "killpg", "waitpid", "pidfd_open"):
            original = getattr(os, name, None)
            if original is not None:
                setattr(os, name, stand_for(_mapping(original), original))


def _asking(name: str, original: Callable[[], int]) -> Callable[..., int]:
    def ask(_: object, /) -> int:
        real = original()
        if not _is_agents(sys._getframe(1)):
            return real
        key = (name, _getpid())
        if key not in _known:
            _known[key] = _told(name, real)
            _real[_known[key]] = real
        return _known[key]

    return ask


def _is_agents(frame: Any) -> bool:
    file = frame.f_code.co_filename
    if file.startswith(_OURS):
        return False
    head = (frame.f_globals.get("__name__") or "").partition(".")[0]
    if head in _LOOK_UP:
        return False
    if any(part in file for part in _INSTALLED) or not file.startswith((_STDLIB, "<frozen ")):
        return True
    return head in _TELLS


def _told(name: str, real: int) -> int:
    """What to say, and tell it: the real number, or the taped one."""
    try:
        lane = lanes.root().id
        if settings.REPLAY:
            from . import tapedvalues

            taped = tapedvalues.take("pid", name, lane)
            if taped is not None:
                told = int(taped["data"]["pid"])
                if settings.FORK:
                    values.emit("pid", name, lane, data={"pid": told})
                return told
        values.emit("pid", name, lane, data={"pid": real}, **({} if settings.RECORD else {"taped": None}))
    except Exception:
        if settings.REPLAY:
            raise
    return real


def _mapping(original: Callable[..., Any]) -> Callable[..., Any]:
    def mapped(_: object, /, pid: Any, *args: Any, **kwargs: Any) -> Any:
        return original(_real.get(pid, pid), *args, **kwargs)

    return mapped
