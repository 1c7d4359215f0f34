"""Child Pythons that will not have the shim: those that are told to ignore their environment. Knows command lines."""

from __future__ import annotations

import os

from . import channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_NAMES = ("python", "pypy")
_WITH_VALUE = "WX"
_LONG_WITH_VALUE = "--check-hash-based-pycs"
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ISOLATING = "IES"  # isolated; without its environment; without site, and so without sitecustomize


def report(argv: Iterable[Any], programs: Sequence[Any], pid: int | None) -> None:
    """Tell of a child with this command line, if it is such a Python. `programs`: where it may be; never raises."""
    try:
        words = [os.fsdecode(word) for word in argv]
        option = isolating_option(words, [os.fsdecode(program) for program in programs])
        # A program that is served from the tape is a script of ours.
        if option and not any(word.startswith(_OURS) for word in words):
            who = "" if pid is None else f"process {pid}: "
            channel.emit(
                "note",
                what="python-without-shim",
                text=f"{' '.join(words)} ({who}started with {option})",
                data={"pid": pid, "argv": words, "how": f"started with {option}"},
            )
    except Exception as error:  # the child was started, and only our note is missing
        channel.emit("note", what="hook-failed", text=f"pythons: {error!r}", data=None)


def isolating_option(words: Sequence[str], programs: Sequence[str] = ()) -> str:
    """The option by which a Python is kept from the shim; empty if it is none, or has no such option."""
    names = [os.path.basename(program) for program in (*programs, *words[:1])]
    if not any(name.startswith(_NAMES) for name in names):
        return ""
    rest = iter(words[1:])
    for word in rest:
        if word == _LONG_WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-") or word in ("-", "--"):
            return ""
        elif not word.startswith("--"):
            for place, letter in enumerate(word[1:], 2):
                if letter in _ISOLATING:
                    return word
                if letter in "cm":
                    return ""
                if letter in _WITH_VALUE:
                    if place == len(word):
                        next(rest, None)
                    break
    return ""
