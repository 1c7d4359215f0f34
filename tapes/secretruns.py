"""Runs of word characters, which is where keys are: knows how to find the few of them that a big text has."""

import re
from typing import Final, NamedTuple

from tapeproxy.tapes.secretpatterns import FORMATS, RUN, WORD_CHARACTERS

_BEFORE: Final = 24
"""Bytes before a run in which `Bearer` or `SecretAccessKey` may stand."""
_LONG: Final = 4096
_HEAD: Final = 256
_RUNS: Final = bytes(97 if byte in WORD_CHARACTERS else 32 for byte in range(256))
_RUN: Final = b"a" * RUN
_MARKS: Final = {one.mark for one in FORMATS}
# By their first letters: an alternation of all of them takes twice as long.
_ANY_MARK: Final = re.compile(
    b"|".join(
        re.escape(first)
        + b"(?:%b)" % b"|".join(re.escape(mark[1:]) for mark in sorted(_MARKS, reverse=True) if mark[:1] == first)
        for first in sorted({mark[:1] for mark in _MARKS})
    )
)
_SMALL: Final = 512
_BYTES_OF_MARKS: Final = frozenset(b"".join(_MARKS))
_BLOCK: Final = 4096
_DENSE: Final = 64
_OFTEN: Final = 8


class Runs(NamedTuple):
    """Runs of word characters, each with what stands before it, in one text. `keyed`: those that may be keys."""

    whole: bytes
    keyed: bytes


NO_RUNS: Final = Runs(b"", b"")


def runs_of(text: bytes) -> Runs:
    """The runs in `text`."""
    spaced = flat(text)
    at = spaced.find(_RUN)
    if at < 0:
        return NO_RUNS
    out: list[bytes] = []
    keyed: list[bytes] = []
    while at >= 0:
        end = spaced.find(b" ", at + RUN)
        end = len(spaced) if end < 0 else end
        run = text[max(at - _BEFORE, 0) : end]
        out.append(run)
        # An image in base64 has no key in it, and its size is that of many conversations.
        keyed.append(run if len(run) < _LONG or b"-" in run or b"_" in run else run[:_HEAD])
        if len(out) % _OFTEN == 0 and (stop := _dense(spaced, end)):
            block = text[max(end - _BEFORE, 0) : stop]
            out.append(block)
            keyed.append(block)
            end = stop
        at = spaced.find(_RUN, end)
    return Runs(b"\n".join(out), b"\n".join(keyed))


def _dense(spaced: bytes, start: int) -> int:
    """Where a block from `start` on ends that is full of short runs, as numbers are: it is taken as one. Else 0."""
    stop = start + _BLOCK
    if spaced.count(_RUN, start, stop) < _DENSE or spaced.count(b" ", start, stop) < _DENSE:
        return 0
    return spaced.rfind(b" ", start, stop)


def flat(text: bytes) -> bytes:
    """`text` with a space for every byte that is no word character."""
    return text.translate(_RUNS)


def marks_in(text: bytes) -> set[bytes]:
    """The marks of formats that stand in `text`."""
    if len(text) < _SMALL:
        return set(_ANY_MARK.findall(text))
    # Of numbers and base64 a few looks tell that they can have the fewest.
    missing = {byte for byte in _BYTES_OF_MARKS if byte not in text}
    return {mark for mark in _MARKS if missing.isdisjoint(mark) and mark in text}
