"""The agent's standard input: taped as it is read, or replaced by what is on the tape."""

from __future__ import annotations

import builtins
import io
import os
import sys

from . import lanes, pipes
from .likeness import stand_for
from .values import SERVES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def install() -> None:
    """Listen to descriptor 0, or give it another content."""
    if SERVES:
        if lanes.root().kind in ("", "x"):  # what a program of the run reads, its parent in the run sends it again
            _serve()
    elif sys.stdin is not None:
        pipes.taps[0] = pipes.Stream("stdin", lanes.root().id)
        sys.stdin = sys.__stdin__ = _listening(sys.stdin)  # type: ignore[misc]  # final only in its stub
        builtins.input = stand_for(_asking(builtins.input), builtins.input)


def _serve() -> None:
    from . import tapedvalues

    lane = lanes.root().id
    pieces = [v for v in tapedvalues.load() if (v["what"], v["name"], v["lane"]) == ("pipe", "stdin", lane)]
    contents = [tapedvalues.content_of(piece) for piece in pieces]
    if contents and None not in contents:
        fd = tapedvalues.file_of(b"".join([content or b"" for content in contents]), "stdin")
        os.dup2(fd, 0)
        os.close(fd)


def _listening(old: Any) -> Any:
    """The same text stream over a raw one that tells; the old one lives on, as closing it would close descriptor 0."""
    buffered = pipes.tapped(old.buffer.raw, -1)
    new: Any = io.TextIOWrapper(buffered, encoding=old.encoding, errors=old.errors, line_buffering=old.line_buffering)
    new.mode = "r"
    _kept.append(old)
    return new


_kept: list[Any] = []


def _asking(original: Callable[..., str]) -> Callable[..., str]:
    def input(_: object, /, *args: Any) -> str:
        # At a terminal, C reads the line past the file object.
        by_hand = sys.stdin is not None and sys.stdout is not None and sys.stdin.isatty() and sys.stdout.isatty()
        line = original(*args)
        hear = pipes.taps.get(0)
        if by_hand and hear is not None:
            hear((line + "\n").encode(sys.stdin.encoding or "utf-8", "surrogateescape"))
        return line

    return input
