"""Where the words of a request come from: earlier answers, what was read, the command line, or the agent itself. Pure.

Only what happened before the request can be a source (`causality.Causality.before`). Of several the one that has the
longest part counts, then the nearest. A part that comes from an answer is looked for in what that answer was asked: so
one gets back to where it came into the run. See docs/WHY.md.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, NamedTuple

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.commontexts import LEAST, Common, CommonTexts, chosen
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape, outlines
from tapeproxy.tapes.folding import Folded, fold
from tapeproxy.tapes.jsonpaths import Step, parse_path
from tapeproxy.tapes.jsonvalues import read_json, write_json
from tapeproxy.tapes.whysources import (
    Leaf,
    Told,
    request_leaves,
    told_by_answer,
    told_by_head,
    told_by_values,
)

_DEEPEST: Final = 16
_LOOKS: Final = 24
"""Searches of all sources for one question."""
_MANY: Final = 16
_OTHERS: Final = 5
_BETWEEN: Final = "\0"
_SHORTEST: Final = 3
"""Characters of a whole value that is the same as another whole value."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, `start` to `end`, and where it comes from.

    `told`: the text it comes from, of which it is `[told_start:told_end]`; None: the agent's own words. `others`: what
    else has the same words, and may be meant as well. `passed`: of the agent's own words that an answer repeats, where
    in that answer's request they stand. `since`: the first request in a row that has it. `came`: where the source had
    it from, as parts of the source's text.
    """

    start: int
    end: int
    text: str
    told: Told | None = None
    told_start: int = 0
    told_end: int = 0
    others: tuple[Told, ...] = ()
    passed: tuple[int, str] | None = None
    since: int | None = None
    came: tuple["Span", ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """A text of a request, in parts."""

    place: str
    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to a question. `whole`: all was looked for; `fresh`: only what the previous call did not have."""

    number: int
    texts: tuple[Explained, ...]
    previous: int | None
    fresh: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked about: a place in the request, in it a `text`, or characters `start` to `end`."""

    path: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None


class Piece(NamedTuple):
    """A text, and the exchange with which it came into the requests."""

    text: Folded
    number: int


class Provenance:
    """Answers questions about one tape; what it has read of it, it keeps."""

    def __init__(self, tape: Tape, causality: Causality | None = None) -> None:
        self._tape = tape
        self._causality = causality or Causality.of(tape)
        self._answers: dict[int, list[Told]] = {}
        self._looks = 0
        self._whole = True

    def why(self, number: int, wanted: Wanted | None = None) -> Why:
        """Where the words of a request come from. Raises UsageError for an exchange or a place that there is not."""
        wanted = wanted or Wanted()
        exchange = self._exchange(number)
        self._looks, self._whole = 0, True
        previous = self._previous(exchange)
        fresh = wanted.path is None and wanted.text is None and previous is not None
        parts = [*self._parts(exchange, wanted, previous if fresh else None)]
        asked = [text[a:b] for _, text, a, b in parts]
        # What a request has from the one before came in with an earlier one, and from what was known then.
        came_in = self._since(asked, exchange)
        pieces = [Piece(Folded(text), since) for text, since in zip(asked, came_in, strict=True)]
        spans = self._explain(pieces, exact=wanted != Wanted())
        texts = list[Explained]()
        for (leaf, text, start, _), found, since in zip(parts, spans, came_in, strict=True):
            moved = [replace(one, start=one.start + start, end=one.end + start) for one in found]
            texts.append(Explained(leaf.place, text, tuple(_merged(self._dated(moved, self._exchange(since))))))
        return Why(number, tuple(texts), None if previous is None else previous.number, fresh, self._whole)

    def _exchange(self, number: int) -> Exchange:
        count = len(self._tape.exchanges)
        if not 1 <= number <= count:
            there = f"they are 1 to {count}" if count else "the tape has none"
            raise UsageError(f"there is no event {number}: {there}", fix="`tapeproxy show TAPE` lists them")
        return self._tape.exchanges[number - 1]

    def _previous(self, exchange: Exchange) -> Exchange | None:
        """The call before in the same lane, to the same address."""
        before = self._befores[exchange.number]
        return None if before is None else self._tape.exchanges[before - 1]

    @cached_property
    def _befores(self) -> dict[int, int | None]:
        last: dict[tuple[str | None, bytes], int] = {}
        out: dict[int, int | None] = {}
        for exchange in outlines(self._tape.exchanges):
            key = exchange.request.lane, exchange.request.url.partition(b"?")[0]
            out[exchange.number] = last.get(key)
            last[key] = exchange.number
        return out

    def _parts(
        self, exchange: Exchange, wanted: Wanted, previous: Exchange | None
    ) -> Iterator[tuple[Leaf, str, int, int]]:
        """The texts that are asked about: leaf, text, and from where to where."""
        leaves = request_leaves(exchange)
        if wanted.path is not None:
            leaves = _at(leaves, wanted.path, exchange.number)
        else:
            had = set() if previous is None else {leaf.text for leaf in request_leaves(previous)}
            inner = [leaf for leaf in leaves if leaf.keys or leaf.place in ("body", "url")]
            leaves = [leaf for leaf in inner if not leaf.is_structure and leaf.text not in had]
        if wanted.text is not None:
            yield from _with_text(leaves, wanted.text, exchange.number)
            return
        for leaf in leaves:
            start = min(wanted.start or 0, len(leaf.text))
            end = len(leaf.text) if wanted.end is None else min(wanted.end, len(leaf.text))
            if start < end:
                yield leaf, leaf.text, start, end

    def _explain(
        self, pieces: Sequence[Piece], *, exact: bool = False, before: int | None = None, depth: int = 0
    ) -> list[list[Span]]:
        """The parts of each piece with their sources; `before`: on the tape before that record.

        `exact`: a text shorter than what is told by itself is looked for inside others, too.
        """
        if not pieces:
            return []
        self._looks += 1
        sources = self._sources(max(piece.number for piece in pieces), before)
        texts = [piece.text for piece in pieces]
        long, free = "", list[tuple[int, int]]()
        for text in texts:
            free.append((len(long), len(long) + len(text.folded)))
            long += text.folded + _BETWEEN
        common = CommonTexts(long)
        found = [*common.find(source.leaf.folded.folded for source in sources)]
        found += self._short(texts, free, sources, exact=exact)
        self._whole &= common.whole
        starts = [start for start, _ in free]
        numbers = [pieces[bisect_right(starts, one.at) - 1].number for one in found]
        found = [one for one, number in zip(found, numbers, strict=True) if self._was_known(sources[one.text], number)]
        found.sort(key=lambda one: (-_weight(one, sources[one.text].leaf), -sources[one.text].index, one))
        parts = chosen(found, free)
        return [
            [*self._spans(piece, first, [part for part in parts if first <= part.at < end], found, sources, depth)]
            for piece, (first, end) in zip(pieces, free, strict=True)
        ]

    def _short(
        self, texts: Sequence[Folded], free: Sequence[tuple[int, int]], sources: Sequence[Told], *, exact: bool
    ) -> Iterator[Common]:
        """Whole texts that are too short to tell inside others, but are the same as a whole one."""
        wanted: dict[str, list[int]] = {}
        for text, (start, end) in zip(texts, free, strict=True):
            if (1 if exact else _SHORTEST) <= end - start < LEAST:
                wanted.setdefault(text.folded, []).append(start)
        if not wanted:
            return
        for at, source in enumerate(sources):
            folded = source.leaf.folded.folded
            if folded in wanted and not source.leaf.is_structure:
                yield from (Common(start, 0, len(folded), at) for start in wanted[folded])
            elif exact:
                for short, starts in wanted.items():
                    if (there := folded.find(short)) >= 0:
                        yield from (Common(start, there, len(short), at) for start in starts)

    def _spans(
        self,
        piece: Piece,
        first: int,
        parts: Sequence[Common],
        found: Sequence[Common],
        sources: Sequence[Told],
        depth: int,
    ) -> Iterator[Span]:
        """A piece in spans: what is from nowhere comes between."""
        text, number = piece
        done = 0
        for part in parts:
            start, end = text.span(part.at - first, part.at - first + part.length)
            yield from _own(text.text, done, start)
            told = sources[part.text]
            at = told.leaf.folded.span(part.there, part.there + part.length)
            others = _others(part, found, sources)
            yield Span(start, end, text.text[start:end], told, *at, others, came=self._came(told, at, number, depth))
            done = end
        yield from _own(text.text, done, len(text.text))

    def _came(self, told: Told, at: tuple[int, int], number: int, depth: int) -> tuple[Span, ...]:
        """Where a source had a part of its text from."""
        if depth >= _DEEPEST or told.kind not in ("answer", "value"):
            return ()
        if self._looks >= _LOOKS:
            self._whole = False
            return ()
        text = told.leaf.text[at[0] : at[1]]
        if told.number is None:
            (spans,) = self._explain([Piece(Folded(text), number)], before=told.index, depth=depth + 1)
            return tuple(_moved(span, at[0]) for span in spans if span.told is not None)
        return tuple(self._asked_for(text, at[0], self._exchange(told.number), depth))

    def _asked_for(self, text: str, at: int, exchange: Exchange, depth: int) -> Iterator[Span]:
        """The parts of an answer's text that its request had, and where they came from."""
        whole = Folded(text)
        leaves = [leaf for leaf in request_leaves(exchange) if leaf.keys or leaf.place in ("body", "url")]
        found = [*CommonTexts(whole.folded).find(leaf.folded.folded for leaf in leaves)]
        # A part that came in by itself is most likely in one of the last messages.
        found.sort(key=lambda one: (-one.length, -one.text, one))
        parts = chosen(found, [(0, len(whole.folded))])
        pieces = [whole.span(part.at, part.at + part.length) for part in parts]
        if not pieces:
            return
        asked = [Piece(Folded(text[a:b]), exchange.number) for a, b in pieces]
        explained = self._explain(asked, depth=depth + 1)
        for part, (start, _), spans in zip(parts, pieces, explained, strict=True):
            passed = (exchange.number, leaves[part.text].place)
            for span in spans:
                # What two texts have in common begins or ends with a few characters more.
                if span.told is not None or len(fold(span.text)) >= LEAST:
                    yield replace(_moved(span, at + start), passed=passed)

    def _sources(self, number: int, before: int | None) -> list[Told]:
        """The texts that were known when an exchange was asked."""
        out = [*self._head]
        limit = self._exchange(number).index if before is None else before
        for exchange in self._tape.exchanges[: number - 1]:
            if exchange.index < limit and self._causality.before(exchange.number, number):
                if exchange.number not in self._answers:
                    self._answers[exchange.number] = [*told_by_answer(exchange)]
                out += self._answers[exchange.number]
        knows: dict[str, int] = {}
        lane = self._exchange(number).request.lane
        for value in self._values:
            if value.index < limit and self._knows(value, lane, number, knows):
                out.append(value)
        return out

    def _knows(self, value: Told, lane: str | None, number: int, knows: dict[str, int]) -> bool:
        """Whether a value can have been known: its lane's last request before it is, where there is one."""
        if value.lane == lane:
            return True
        if value.lane not in knows:
            # Of a lane's requests in order, those that are known come first.
            unknown = (
                index
                for index, other in self._asked.get(value.lane, ())
                if other != number and not self._causality.before(other, number)
            )
            knows[value.lane] = next(unknown, self._exchange(number).index)
        return value.index < knows[value.lane]

    @cached_property
    def _head(self) -> list[Told]:
        return [*told_by_head(self._tape)]

    @cached_property
    def _values(self) -> list[Told]:
        return told_by_values(self._tape)

    @cached_property
    def _asked(self) -> dict[str, list[tuple[int, int]]]:
        """The requests of each lane: record and number."""
        out: dict[str, list[tuple[int, int]]] = {}
        for exchange in self._tape.exchanges:
            out.setdefault(exchange.request.lane or "", []).append((exchange.index, exchange.number))
        return out

    def _was_known(self, told: Told, number: int) -> bool:
        """Whether a source that a later exchange knew of was known to this one, too."""
        if told.number is not None:
            return told.number < number and self._causality.before(told.number, number)
        return told.kind != "value" or told.index < self._exchange(number).index

    def _dated(self, spans: Sequence[Span], exchange: Exchange) -> Iterator[Span]:
        """The spans with the first of the requests in a row that has them."""
        for span, since in zip(spans, self._since([span.text for span in spans], exchange), strict=True):
            if span.told is None or self._was_known(span.told, since) or self._looks >= _LOOKS:
                yield replace(span, since=since)
                continue
            # It was in a request before its source came: it is from elsewhere.
            (older,) = self._explain([Piece(Folded(span.text), since)])
            yield from (replace(_moved(one, span.start), since=since) for one in older)

    def _since(self, texts: Sequence[str], exchange: Exchange) -> list[int]:
        """The first of the requests in a row, back from an exchange's, that has each text."""
        since = [exchange.number for _ in texts]
        forms = [*map(_written, texts)]
        left, other = [*range(len(texts))], self._previous(exchange)
        while left and other is not None:
            body = decode(other.request_body, other.request.headers).data
            if len(left) > _MANY:  # searching a long body for each would take too long
                had = _texts_in(read_json(body)[0])
                left = [at for at in left if texts[at] in had]
            else:
                left = [at for at in left if any(form in body for form in forms[at])]
            for at in left:
                since[at] = other.number
            other = self._previous(other)
        return since


def _weight(one: Common, leaf: Leaf) -> float:
    """How much a part counts: in the text of all JSON, some quotes and names are in it by chance."""
    return one.length if leaf.keys or leaf.name not in ("body", "content") else one.length * 0.75


def _texts_in(value: Any) -> set[str]:
    """The strings in a JSON value."""
    out, stack = set[str](), [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            out.add(one)
        elif isinstance(one, dict | list):
            stack += one.values() if isinstance(one, dict) else one
    return out


def _written(text: str) -> set[bytes]:
    """A text as it may stand in a body: as it is, or as JSON writes it."""
    import json

    plain, written = text.encode(errors="replace"), write_json(text)
    return {plain, plain if written is None else written[1:-1], json.dumps(text)[1:-1].encode()}


def _own(text: str, start: int, end: int) -> Iterator[Span]:
    if start < end:
        yield Span(start, end, text[start:end])


def _merged(spans: Iterator[Span]) -> list[Span]:
    """Spans of which no two that follow each other are the agent's own words."""
    out: list[Span] = []
    for span in spans:
        last = out[-1] if out else None
        if last is None or last.told is not None or span.told is not None:
            out.append(span)
            continue
        since = max(last.since or 0, span.since or 0)
        out[-1] = replace(last, end=span.end, text=last.text + span.text, since=since)
    return out


def _moved(span: Span, by: int) -> Span:
    return replace(span, start=span.start + by, end=span.end + by)


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


def _at(leaves: Sequence[Leaf], path: str, number: int) -> list[Leaf]:
    """The texts at a place and below it. Raises UsageError where there is none."""
    path = path if path.startswith("$") else path.lower()
    if not path.startswith("$"):
        found = [leaf for leaf in leaves if leaf.place == path]
    else:
        try:
            steps = parse_path(path).steps
        except ValueError as error:
            raise UsageError(str(error)) from None
        if any(step.deep for step in steps):
            raise UsageError(f"{path} names no one place", fix="name it without .., as $.messages[3].content")
        found = [leaf for leaf in leaves if leaf.keys and _leads(steps, leaf)]
    if not found:
        near = get_close_matches(path, [leaf.place for leaf in leaves], n=3, cutoff=0.5)
        fix = f"did you mean: {', '.join(near)}" if near else "--path takes $.…, body, url or `header NAME`"
        raise UsageError(f"there is no text at {path} in the request of event {number}", fix=fix)
    return found


def _leads(steps: Sequence[Step], leaf: Leaf) -> bool:
    return len(steps) <= len(leaf.keys) and all(
        step.name is None or step.name == key for step, key in zip(steps, leaf.keys, strict=False)
    )


def _with_text(leaves: Sequence[Leaf], text: str, number: int) -> Iterator[tuple[Leaf, str, int, int]]:
    """Where a text stands, spaces aside; its first place in each text."""
    wanted = Folded(text).folded
    any_found = False
    for leaf in leaves:
        at = leaf.folded.folded.find(wanted) if wanted else -1
        if at >= 0:
            any_found = True
            yield leaf, leaf.text, *leaf.folded.span(at, at + len(wanted))
    if not any_found:
        raise UsageError(
            f"the request of event {number} has no text {text!r} there", fix=f"see: tapeproxy show TAPE {number}"
        )
