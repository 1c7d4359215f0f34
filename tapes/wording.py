"""How two texts differ, for people: the words that changed with a few around them, or an excerpt. Pure."""

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

EXCERPT = 60
"""Characters of a value that are shown."""
_CONTEXT = 5
"""Words of context on each side of a change."""
_MOST_WORDS = 600
"""Of texts that differ over more words than this, only the beginning of the difference is compared word by word."""
_MOST_CHANGES = 3
_BREAK = re.compile(r"\s")
_LONGEST_WORD = 200
_PROMISING = 1 << 12
_LAST = 1 << 10
# A time, a path or a uuid is one word.
_WORD = re.compile(r"[\w/~][\w.:/+@-]*\w|\w|\s+|[^\w\s]")


class Change(NamedTuple):
    """Words that were replaced: `taped` by `asked`; one of them may be empty. `before`: up to 10 words before them."""

    taped: str
    asked: str
    before: str = ""


def excerpts(taped: str | None, asked: str | None) -> tuple[str | None, str | None]:
    """Both texts, cut around their first difference when they are long."""
    if taped is None or asked is None:
        return _cut(taped, 0), _cut(asked, 0)
    start = max(shared_prefix(taped, asked) - EXCERPT // 3, 0)
    if max(len(taped), len(asked)) <= EXCERPT:
        start = 0
    return _cut(taped, start), _cut(asked, start)


def word_changes(taped: str, asked: str) -> list[Change]:
    """Which words became which, in order."""
    return [change for change, _, _ in _changes(_Pair.of(taped, asked))]


def word_diff(taped: str, asked: str) -> str:
    """The changes with a few words around them, as `git diff --word-diff` has them: `at [-noon-]{+dusk+} the tide`."""
    pair = _Pair.of(taped, asked)
    shown: list[str] = []
    changes = list(_changes(pair))
    for change, start, end in changes[:_MOST_CHANGES]:
        before, after = pair.asked[max(start - 2 * _CONTEXT, 0) : start], pair.asked[end : end + 2 * _CONTEXT]
        out = f"[-{_clip(change.taped)}-]" if change.taped else ""
        new = f"{{+{_clip(change.asked)}+}}" if change.asked else ""
        lead = "…" if start > 2 * _CONTEXT or pair.cut_before else ""
        tail = "…" if end + 2 * _CONTEXT < len(pair.asked) or pair.cut_after else ""
        shown.append(f"{lead}{''.join(before)}{out}{new}{''.join(after)}{tail}")
    if len(changes) > _MOST_CHANGES:
        shown.append(f"and {len(changes) - _MOST_CHANGES} more changes")
    return " ".join(" | ".join(shown).split())


def shared_prefix(one: bytes | str, other: bytes | str) -> int:
    """How many bytes or characters both begin with."""
    return _reach(lambda start, end: one[start:end] == other[start:end], min(len(one), len(other)))


def shared_ends(one: bytes | str, other: bytes | str, grain: int = 1) -> tuple[int, int]:
    """How many bytes or characters both begin and then end with; together never more than the shorter one has.

    With a `grain`, which is faster, each may be up to `grain` - 1 less, and both together are never more.
    """
    a, b = len(one), len(other)
    start = _reach(lambda start, end: one[start:end] == other[start:end], min(a, b), grain)
    end = _reach(lambda near, far: one[a - far : a - near] == other[b - far : b - near], min(a, b) - start, grain)
    return start, end


def _reach(same: Callable[[int, int], bool], most: int, grain: int = 1) -> int:
    """How far, up to `most`, `same(start, end)` holds: found in a few comparisons, in all as long as that is."""
    at, step, far = 0, 64, False
    while at < most and same(at, min(at + step, most)):
        at = min(at + step, most)
        step *= 2
        if at >= _PROMISING and not far:
            # Texts that grow at their end share all but the last bit of the shorter one.
            far = True
            if most - _LAST > at and same(at, most - _LAST):
                at, step = most - _LAST, 64
    low, high = at, min(at + step, most)
    while high - low >= grain:
        middle = (low + high + 1) // 2
        if same(at, middle):
            low = middle
        else:
            high = middle - 1
    return low


class _Pair(NamedTuple):
    """Two texts as words, without what they share at their ends but for some context."""

    taped: list[str]
    asked: list[str]
    cut_before: bool
    cut_after: bool

    @classmethod
    def of(cls, taped: str, asked: str) -> "_Pair":
        start, end = shared_ends(taped, asked)
        margin = 12 * _CONTEXT
        # Whole words: where the texts part is often inside of one.
        first = max(start - margin, 0)
        last = max(end - margin, 0)
        a, b = taped[first : len(taped) - last], asked[first : len(asked) - last]
        words = [_WORD.findall(text[: 32 * _MOST_WORDS])[:_MOST_WORDS] for text in (a, b)]
        return cls(words[0], words[1], first > 0, last > 0)


def _changes(pair: _Pair) -> Iterator[tuple[Change, int, int]]:
    """Each change with where it stands in the words asked. Changes that only a space parts are one."""
    matcher = SequenceMatcher(str.isspace, pair.taped, pair.asked)
    merged: list[list[int]] = []
    for what, a0, a1, b0, b1 in matcher.get_opcodes():
        if what == "equal":
            continue
        between = "".join(pair.asked[merged[-1][3] : b0]) if merged else "-"
        if merged and len(between) <= 1 and not between.isalnum():
            merged[-1][1], merged[-1][3] = a1, b1
        else:
            merged.append([a0, a1, b0, b1])
    for a0, a1, b0, b1 in merged:
        before = "".join(pair.asked[max(b0 - 2 * _CONTEXT, 0) : b0])
        yield Change("".join(pair.taped[a0:a1]), "".join(pair.asked[b0:b1]), before), b0, b1


def _clip(text: str) -> str:
    return text if len(text) <= 2 * EXCERPT else f"{text[:EXCERPT]}…{text[-EXCERPT // 2 :]}"


def _cut(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    piece = text[start : start + EXCERPT]
    return ("…" if start else "") + piece + ("…" if start + EXCERPT < len(text) else "")


type Run = tuple[Literal["same", "out", "in"], str]


def word_runs(taped: str, asked: str) -> list[Run]:
    """Both texts whole, in runs: what they share, what only the taped one has (`out`), what only the other one (`in`).

    Where very much differs, one run is taken out and another put in.
    """
    start, end = shared_ends(taped, asked)
    # Whole words: back to where the one begins in which the texts part, and on to where it ends.
    start = max((match.end() for match in _BREAK.finditer(taped, max(start - _LONGEST_WORD, 0), start)), default=0)
    rest = len(taped) - end
    tail = _BREAK.search(taped, rest)
    end = min(len(taped) - tail.start() if tail is not None and end else 0, end)
    middles = [text[start : len(text) - end] for text in (taped, asked)]
    words = [_WORD.findall(middle) for middle in middles]
    runs: list[Run] = [("same", taped[:start])]
    if max(map(len, words)) > 2 * _MOST_WORDS:
        runs += [("out", middles[0]), ("in", middles[1])]
    else:
        for what, a0, a1, b0, b1 in SequenceMatcher(str.isspace, words[0], words[1]).get_opcodes():
            if what == "equal":
                runs.append(("same", "".join(words[0][a0:a1])))
            else:
                runs += [("out", "".join(words[0][a0:a1])), ("in", "".join(words[1][b0:b1]))]
    runs.append(("same", taped[len(taped) - end :] if end else ""))
    return [run for run in runs if run[1]]
