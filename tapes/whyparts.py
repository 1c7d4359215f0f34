"""The parts of texts that sources have, too: which source each part is given to, and who else has it. Pure.

Of several sources the one that has the longest part counts, then the nearest. All texts of a question are looked for at
once: the sources, which may be many, are walked through once.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tapeproxy.tapes.commontexts import LEAST, Common, CommonTexts, chosen
from tapeproxy.tapes.whyknown import Piece
from tapeproxy.tapes.whysources import Leaf, Told

_OTHERS: Final = 5
_BETWEEN: Final = "\0"
_SHORTEST: Final = 3
"""Characters of a whole value that is the same as another whole value."""


@dataclass(frozen=True, slots=True)
class Part:
    """Characters `start` to `end` of a piece are `told_start` to `told_end` of `told`; `others` have them, too."""

    start: int
    end: int
    told: Told
    told_start: int
    told_end: int
    others: tuple[Told, ...]


class Texts:
    """Texts one after the other in a long one, each of them once."""

    def __init__(self, folded: Sequence[str]) -> None:
        self._starts: dict[str, int] = {}
        self._ordered: list[int] = []
        self._sizes: list[int] = []
        at = 0
        for text in folded:
            if text not in self._starts:
                self._starts[text] = at
                self._ordered.append(at)
                self._sizes.append(len(text))
                at += len(text) + len(_BETWEEN)
        self.long = _BETWEEN.join(self._starts)

    def interval(self, text: str) -> tuple[int, int]:
        """Where one of the texts stands."""
        start = self._starts[text]
        return start, start + len(text)

    def grouped(self, found: Sequence[Common]) -> dict[int, list[Common]]:
        """What was found, by the start of the text in which it lies; over the end of one nothing reaches."""
        out: dict[int, list[Common]] = {}
        for one in found:
            at = bisect_right(self._ordered, one.at) - 1
            start, stop = self._ordered[at], self._ordered[at] + self._sizes[at]
            if one.at + one.length > stop:  # a source that has the separator
                one = one._replace(length=stop - one.at)
            if one.length > 0:
                out.setdefault(start, []).append(one)
        return out


def find_parts(
    pieces: Sequence[Piece], sources: Sequence[Told], known: Callable[[Told, Piece], bool], *, exact: bool = False
) -> tuple[list[list[Part]], bool]:
    """The parts of each piece, in order, and whether all was looked for.

    `exact`: a text shorter than what is told by itself is looked for inside others, too.
    """
    texts = Texts([piece.text.folded for piece in pieces])
    common = CommonTexts(texts.long)
    found = [*common.find(source.leaf.folded.folded for source in sources)]
    found += _short(pieces, texts, sources, exact=exact)
    found.sort(key=lambda one: (-_weight(one, sources[one.text].leaf), -sources[one.text].index, one))
    grouped = texts.grouped(found)
    done: dict[tuple[str, int, int], tuple[list[Common], list[Common]]] = {}
    out: list[list[Part]] = []
    for piece in pieces:
        start, end = texts.interval(piece.text.folded)
        key = piece.text.folded, piece.number, piece.limit
        if key not in done:
            its = [one for one in grouped.get(start, ()) if known(sources[one.text], piece)]
            done[key] = chosen(its, [(start, end)]), its
        parts, its = done[key]
        out.append([_part(piece, start, part, its, sources) for part in parts])
    return out, common.whole


def _short(pieces: Sequence[Piece], texts: Texts, sources: Sequence[Told], *, exact: bool) -> Iterator[Common]:
    """Whole texts that are too short to tell inside others, but are the same as a whole one."""
    folded = {piece.text.folded for piece in pieces}
    wanted = {text: texts.interval(text)[0] for text in folded if (1 if exact else _SHORTEST) <= len(text) < LEAST}
    if not wanted:
        return
    for at, source in enumerate(sources):
        text = source.leaf.folded.folded
        if text in wanted and not source.leaf.is_structure:
            yield Common(wanted[text], 0, len(text), at)
        elif exact:
            for short, start in wanted.items():
                if (there := text.find(short)) >= 0:
                    yield Common(start, there, len(short), at)


def _part(piece: Piece, first: int, part: Common, found: Sequence[Common], sources: Sequence[Told]) -> Part:
    told = sources[part.text]
    at = part.at - first
    here = piece.text.span(at, at + part.length)
    there = told.leaf.folded.span(part.there, part.there + part.length)
    return Part(*here, told, *there, _others(part, found, sources))


def _weight(one: Common, leaf: Leaf) -> float:
    """How much a part counts: in the text of all JSON, some quotes and names are in it by chance."""
    return one.length if leaf.keys or leaf.name not in ("body", "content") else one.length * 0.75


def _others(part: Common, found: Sequence[Common], sources: Sequence[Told]) -> tuple[Told, ...]:
    """What else has all of a part."""
    mine = sources[part.text]
    seen = {mine.origin}
    out: list[Told] = []
    for one in found:
        if len(out) == _OTHERS or one.length < part.length:
            break
        if one.at <= part.at and part.at + part.length <= one.at + one.length:
            told = sources[one.text]
            if told.origin not in seen:
                seen.add(told.origin)
                out.append(told)
    return tuple(out)
