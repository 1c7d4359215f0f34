"""The way back of what was told: what an answer had been asked, where that came from, and so on. Pure.

It goes step by step for all parts at once, so that a step costs one walk through the sources however many parts there
are. A part that two texts share is followed once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tapeproxy.tapes.commontexts import LEAST, Common, CommonTexts, chosen
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.folding import Folded, fold
from tapeproxy.tapes.whyknown import Known, Piece
from tapeproxy.tapes.whyparts import Part, Texts, find_parts
from tapeproxy.tapes.whysources import Leaf, Told, request_leaves
from tapeproxy.tapes.whyspans import Span

_DEEPEST: Final = 16
_MOST_LEAVES: Final = 400_000
"""Texts of requests that are looked into for one question."""

type _Key = tuple[Told, int, int, int]


@dataclass(slots=True)
class Link:
    """A span, of the moment `number`, whose way back is still to be found."""

    span: Span
    number: int
    came: list["Link"] = field(default_factory=list["Link"])

    def whole(self) -> Span:
        """The span with its way back."""
        return replace(self.span, came=tuple(link.whole() for link in self.came)) if self.came else self.span


class _Job(NamedTuple):
    """Text of an answer, of which the parts that its request had are wanted."""

    link: Link
    text: Folded
    number: int


class _Had(NamedTuple):
    """Characters `start` to `end` of an answer's text stand in its request at `place`."""

    start: int
    end: int
    place: str


class _Follow(NamedTuple):
    """A piece that is explained next, for a link; `passed` as in `Span`, `at`: where in the source it began."""

    link: Link
    piece: Piece
    at: int
    passed: tuple[int, str] | None


class Chains:
    """Follows links back, for one question."""

    def __init__(self, tape: Tape, known: Known) -> None:
        self._tape = tape
        self._known = known
        self._left = _MOST_LEAVES
        self.whole = True
        """Whether each way was followed to its end."""

    def follow(self, links: Sequence[Link]) -> None:
        """Put the way back into the links."""
        done: dict[_Key, list[Link]] = {}
        for _ in range(_DEEPEST):
            links = [link for link in links if self._is_new(link, done)]
            follows = [*self._values(links), *self._answers(links)]
            if not follows:
                return
            links = self._step(follows)
        self.whole &= not any(link.span.told is not None for link in links)

    def _is_new(self, link: Link, done: dict[_Key, list[Link]]) -> bool:
        """Whether a link is to be followed. One like it may have been: then it has the same way back."""
        told = link.span.told
        if told is None or told.kind not in ("answer", "value"):
            return False
        key = told, link.span.told_start, link.span.told_end, link.number if told.number is None else 0
        if key in done:
            link.came = done[key]
            return False
        done[key] = link.came
        return True

    def _values(self, links: Sequence[Link]) -> Iterator[_Follow]:
        """What was read past the wire may itself have been told before."""
        for link in links:
            told = link.span.told
            if told is not None and told.number is None:
                text = told.leaf.text[link.span.told_start : link.span.told_end]
                piece = self._known.piece(text, link.number, told.index)
                yield _Follow(link, piece, link.span.told_start, None)

    def _answers(self, links: Sequence[Link]) -> Iterator[_Follow]:
        """What an answer has of its own request."""
        jobs = list[_Job]()
        for link in links:
            told = link.span.told
            if told is not None and told.number is not None:
                text = told.leaf.text[link.span.told_start : link.span.told_end]
                jobs.append(_Job(link, Folded(text), told.number))
        for job, had in zip(jobs, self._asked_for(jobs), strict=True):
            for start, end, place in had:
                piece = self._known.piece(job.text.text[start:end], job.number)
                yield _Follow(job.link, piece, job.link.span.told_start + start, (job.number, place))

    def _step(self, follows: Sequence[_Follow]) -> list[Link]:
        pieces = [follow.piece for follow in follows]
        found, whole = find_parts(pieces, self._known.sources(pieces), self._known.has)
        self.whole &= whole
        out: list[Link] = []
        for (link, piece, at, passed), parts in zip(follows, found, strict=True):
            for span in spans_of(piece.text.text, parts):
                # What two texts have in common begins or ends with a few characters more.
                if span.told is not None or (passed is not None and len(fold(span.text)) >= LEAST):
                    one = Link(replace(moved(span, at), passed=passed), piece.number)
                    link.came.append(one)
                    out.append(one)
        return out

    def _asked_for(self, jobs: Sequence[_Job]) -> Iterator[list[_Had]]:
        """Of each answer's text the parts that its request had."""
        asked = {number: self._leaves(number) for number in sorted({job.number for job in jobs}, reverse=True)}
        sizes = {number: sum(len(leaf.text) for leaf in leaves) for number, leaves in asked.items()}
        large = [job for job in jobs if len(job.text.folded) < sizes[job.number]]
        together = iter(self._in_large(large, asked))
        for job in jobs:
            if len(job.text.folded) < sizes[job.number]:
                yield next(together)
            else:
                yield self._in_small(job, asked[job.number])

    def _in_small(self, job: _Job, leaves: Sequence[Leaf]) -> list[_Had]:
        """The parts of a text that is longer than all of its request, as a page is that was asked for by address."""
        texts = Texts([leaf.folded.folded for leaf in leaves])
        common = CommonTexts(texts.long)
        places = {texts.interval(leaf.folded.folded)[0]: (at, leaf) for at, leaf in enumerate(leaves)}
        turned = [
            Common(one.there, one.at - start, one.length, start)
            for start, some in texts.grouped([*common.find([job.text.folded])]).items()
            for one in some
        ]
        self.whole &= common.whole
        return _parts_of(job, 0, turned, places)

    def _in_large(self, jobs: Sequence[_Job], asked: Mapping[int, Sequence[Leaf]]) -> Iterator[list[_Had]]:
        """The parts of texts that are shorter. What several requests have is looked into once."""
        texts = Texts([job.text.folded for job in jobs])
        numbers: dict[str, int] = {}
        for number in {job.number for job in jobs}:
            for leaf in asked[number]:
                numbers.setdefault(leaf.text, len(numbers))
        common = CommonTexts(texts.long)
        found = texts.grouped([*common.find(map(fold, numbers))]) if numbers else {}
        self.whole &= common.whole
        # Of what a request says twice the last one counts: it most likely came in by itself.
        places = {
            number: {numbers[leaf.text]: (at, leaf) for at, leaf in enumerate(asked[number])}
            for number in {job.number for job in jobs}
        }
        for job in jobs:
            start = texts.interval(job.text.folded)[0]
            yield _parts_of(job, start, found.get(start, ()), places[job.number])

    def _leaves(self, number: int) -> list[Leaf]:
        """The texts of a request that are long enough."""
        if self._left <= 0:
            self.whole = False
            return []
        leaves = request_leaves(self._tape.exchanges[number - 1])
        self._left -= len(leaves)
        return [leaf for leaf in leaves if leaf.is_said and len(leaf.text) >= LEAST]


def _parts_of(job: _Job, start: int, found: Sequence[Common], places: Mapping[int, tuple[int, Leaf]]) -> list[_Had]:
    """The parts of a text that begins at `start` of the long one; `places`: its request's texts, by their numbers."""
    its = [one for one in found if one.text in places]
    its.sort(key=lambda one: (-one.length, -places[one.text][0], one))
    return [
        _Had(*job.text.span(part.at - start, part.at - start + part.length), places[part.text][1].place)
        for part in chosen(its, [(start, start + len(job.text.folded))])
    ]


def spans_of(text: str, parts: Sequence[Part]) -> Iterator[Span]:
    """A text in spans: what is from nowhere comes between the parts."""
    done = 0
    for part in parts:
        if done < part.start:
            yield Span(done, part.start, text[done : part.start])
        its = text[part.start : part.end]
        yield Span(part.start, part.end, its, part.told, part.told_start, part.told_end, part.others)
        done = part.end
    if done < len(text):
        yield Span(done, len(text), text[done:])


def moved(span: Span, by: int) -> Span:
    """The span, so many characters further on."""
    return replace(span, start=span.start + by, end=span.end + by)
