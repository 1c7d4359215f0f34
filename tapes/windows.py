"""Where in a text that a replay asked differently a value stands. Knows texts, not what the values are."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tapeproxy.tapes.wording import shared_ends, shared_prefix

_WIDEST = 20_000  # characters of a difference that are looked at
_MARGIN = 40
_HEAD, _TAIL = 8, 6  # characters that a part of a value must have; fewer where it stands alone
_FOLDED = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_TOKEN = re.compile(r"[\w.:+-]")


class Window(NamedTuple):
    """The text that was asked around where it differs, lower case too; matches must overlap [start, end)."""

    text: str
    lower: str
    start: int
    end: int
    taped: str
    asked: str


def window_of(taped: str, asked: str) -> Window:
    """The part of `asked` that differs, out to the ends of its words, with a margin."""
    start, tail = shared_ends(taped, asked)
    end, taped_end = len(asked) - tail, len(taped) - tail
    begin = start
    while begin and start - begin < _MARGIN and _TOKEN.match(asked[begin - 1]):
        begin -= 1
    grown = 0
    while end + grown < len(asked) and grown < _MARGIN and _TOKEN.match(asked[end + grown]):
        grown += 1
    end = min(end + grown, begin + _WIDEST)
    low, high = max(begin - _MARGIN, 0), min(end + _MARGIN, len(asked))
    text = asked[low:high]
    return Window(text, _fold(text), begin - low, end - low, _fold(taped[begin : taped_end + grown]), asked)


def _fold(text: str) -> str:
    """ASCII in lower case: `str.lower` makes some texts longer, and places in them would be other ones."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)


@lru_cache(16)
def _pieces(text: str, length: int) -> frozenset[str]:
    """All pieces of a text that are so long: most values are ruled out by one look-up instead of a search."""
    return frozenset(text[at : at + length] for at in range(len(text) - length + 1))


def occurrences(text: str, window: Window, *, ends: bool) -> Iterator[int]:
    """Where `text` stands in the window, overlapping the difference, and is not on the tape there.

    Not within a longer number, nor within a longer word where it is short; `ends`: nor followed by more of a number.
    """
    text = _fold(text)
    start = text[:_TAIL]
    if start not in _pieces(window.lower, len(start)):
        return
    short = len(text) < _TAIL
    digits = text.isdigit()
    if _stands(text, window.taped, short, digits, ends):
        return
    at = window.lower.find(text)
    while at >= 0:
        if at < window.end and at + len(text) > window.start and _is_apart(text, window.lower, at, short, digits, ends):
            yield at
        at = window.lower.find(text, at + 1)


def _stands(text: str, within: str, short: bool, digits: bool, ends: bool) -> bool:
    at = within.find(text)
    while at >= 0:
        if _is_apart(text, within, at, short, digits, ends):
            return True
        at = within.find(text, at + 1)
    return False


def _is_apart(text: str, within: str, at: int, short: bool, digits: bool, ends: bool) -> bool:
    before = within[at - 1] if at else " "
    after = within[at + len(text)] if at + len(text) < len(within) else " "
    if short and (before.isalnum() or after.isalnum() or before == "."):
        return False
    if text[0].isdigit() and before.isdigit():
        return False
    return not (digits and ends and after.isdigit())


def locate(text: str, window: Window, *, whole: bool) -> tuple[int, int] | None:
    """Where a value stands in the window, or the longest part of it that programs would cut off (`[:8]`, `[-6:]`)."""
    at = next(occurrences(text, window, ends=True), None)
    if at is not None:
        return at, at + len(text)
    if whole or len(text) <= _TAIL:
        return None
    lowered = _fold(text)
    best: tuple[int, int] | None = None
    for start in occurrences(lowered[:_TAIL], window, ends=False):
        length = shared_prefix(lowered, window.lower[start:])
        best = _longer(best, start, start + length, window)
    for start in occurrences(lowered[-_TAIL:], window, ends=False):
        end = start + _TAIL
        length = shared_prefix(lowered[::-1], window.lower[:end][::-1])
        best = _longer(best, end - length, end, window)
    return best


def _longer(best: tuple[int, int] | None, start: int, end: int, window: Window) -> tuple[int, int] | None:
    alone = not (window.text[start - 1 : start].isalnum() or window.text[end : end + 1].isalnum())
    if end - start < (_TAIL if alone else _HEAD) or window.lower[start:end] in window.taped:
        return best
    return (start, end) if best is None or end - start > best[1] - best[0] else best
