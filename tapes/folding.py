"""Text without what changes when it is passed on: spaces, line ends, the escapes of JSON. Knows where all of it stood.

The same words are the same folded text in a prompt, in JSON, and in JSON inside a string of JSON.
"""

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final, NamedTuple

_FOLDED: Final = re.compile(r'\s+|(?:\\+u[0-9a-fA-F]{4})+|\\+[nrt]|\\+(?=["/\\])')
_SPACE: Final = re.compile(r"\s+")
_UNIT: Final = re.compile(r"u([0-9a-fA-F]{4})")


class _Run(NamedTuple):
    """Characters that stayed together: where they are in the folded text and in the text, and how many here and there.

    Of what was an escape the two lengths differ.
    """

    at: int
    was: int
    length: int
    was_length: int


class Folded:
    """A text and what is left of it when it is folded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = fold(text)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text a part of the folded text stands. `start < end`."""
        return self._place(start)[0], self._place(end - 1)[1]

    def folded_span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the folded text a part of the text stands; empty where it was nothing but spaces."""
        return len(fold(self.text[:start])), len(fold(self.text[:end]))

    def _place(self, at: int) -> tuple[int, int]:
        run = self._runs[bisect_right(self._starts, at) - 1]
        if run.length != run.was_length:
            return run.was, run.was + run.was_length
        return run.was + at - run.at, run.was + at - run.at + 1

    @cached_property
    def _runs(self) -> list[_Run]:
        pattern = _FOLDED if "\\" in self.text else _SPACE
        runs: list[_Run] = []
        at = was = 0
        for match in pattern.finditer(self.text):
            if length := match.start() - was:
                runs.append(_Run(at, was, length, length))
                at += length
            if kept := _kept(match):
                runs.append(_Run(at, match.start(), len(kept), len(match[0])))
                at += len(kept)
            was = match.end()
        if length := len(self.text) - was:
            runs.append(_Run(at, was, length, length))
        return runs

    @cached_property
    def _starts(self) -> list[int]:
        return [run.at for run in self._runs]


def fold(text: str) -> str:
    """`text` without spaces, and with the escapes of JSON undone, however deep."""
    return _FOLDED.sub(_kept, text) if "\\" in text else "".join(text.split())


def _kept(match: re.Match[str]) -> str:
    """What is left of spaces and escapes."""
    units = _UNIT.findall(match[0]) if match[0][:1] == "\\" else ()
    if not units:
        return ""
    text = bytes.fromhex("".join(units)).decode("utf-16-be", errors="replace")
    return "".join(text.split())
