"""Where the words of a request come from: earlier answers, what was read, the command line, or the agent itself. Pure.

Only what happened before the request can be a source (`causality.Causality.before`). A part that comes from an answer
is looked for in what that answer was asked: so one gets back to where it came into the run. See docs/WHY.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.whychains import Chains, Link, moved, spans_of
from tapeproxy.tapes.whyknown import Known, Piece
from tapeproxy.tapes.whyparts import find_parts
from tapeproxy.tapes.whyrows import Rows
from tapeproxy.tapes.whysources import request_leaves
from tapeproxy.tapes.whyspans import Explained, Span, Wanted, Why
from tapeproxy.tapes.whywanted import Asked, asked_texts, fresh_texts

__all__ = ["Provenance", "Wanted"]

_BATCH: Final = 250_000
"""Characters that are looked for together: an index of them is in memory meanwhile."""
_MOST_LEAVES: Final = 600_000


class Provenance:
    """Answers questions about one tape; what it has read of it, it keeps."""

    def __init__(self, tape: Tape, causality: Causality | None = None) -> None:
        self._tape = tape
        self._known = Known(tape, causality or Causality.of(tape))
        self._rows = Rows(tape)

    def why(self, number: int, wanted: Wanted | None = None) -> Why:
        """Where the words of a request come from. Raises UsageError for an exchange or a place that there is not."""
        wanted = wanted or Wanted()
        exchange = self._exchange(number)
        previous = self._rows.previous(number)
        fresh = wanted.path is None and wanted.text is None and previous is not None
        asked = [*self._asked(exchange, wanted, previous if fresh else None)]
        # What a request has from the one before came in with an earlier one, and from what was known then.
        since = self._rows.since((one.text, number) for one in asked)
        exact = wanted != Wanted() and (len(asked) == 1 or wanted.text is not None)
        texts, whole = self._explain(asked, since, exact=exact)
        return Why(number, tuple(texts), previous, fresh, whole)

    def each(self, most: int) -> Iterator[Why]:
        """What is fresh in each request, in order, until that is `most` characters, or very many texts were looked at.

        It is looked for in batches: all of a tape costs little more than the longest of its requests.
        """
        batch: list[tuple[int, list[Asked]]] = []
        size, looked = 0, 0
        for number, asked, leaves in self._fresh():
            length = sum(len(one.text) for one in asked)
            most, looked = most - length, looked + leaves
            if most < 0 or looked > _MOST_LEAVES:
                break
            batch.append((number, asked))
            size += length
            if size > _BATCH:
                yield from self._batch(batch)
                batch, size = [], 0
        yield from self._batch(batch)

    def _fresh(self) -> Iterator[tuple[int, list[Asked], int]]:
        """Of each request its number, the texts that the one before did not have, and how many texts it has."""
        rows: dict[int, frozenset[str]] = {}  # the last request of each row
        for exchange in self._tape.exchanges:
            previous = self._rows.previous(exchange.number)
            had = rows.pop(previous, frozenset()) if previous is not None else frozenset[str]()
            leaves = request_leaves(exchange)
            rows[exchange.number] = frozenset(leaf.text for leaf in leaves)
            yield exchange.number, [*fresh_texts(leaves, had)], len(leaves)

    def _batch(self, batch: Sequence[tuple[int, list[Asked]]]) -> Iterator[Why]:
        since = self._rows.since((one.text, number) for number, asked in batch for one in asked)
        texts, whole = self._explain([one for _, asked in batch for one in asked], since, exact=False)
        rest = iter(texts)
        for number, asked in batch:
            previous = self._rows.previous(number)
            yield Why(number, tuple(islice(rest, len(asked))), previous, previous is not None, whole)

    def _exchange(self, number: int) -> Exchange:
        count = len(self._tape.exchanges)
        if not 1 <= number <= count:
            there = f"they are 1 to {count}" if count else "the tape has none"
            raise UsageError(f"there is no event {number}: {there}", fix="`tapeproxy show TAPE` lists them")
        return self._tape.exchanges[number - 1]

    def _asked(self, exchange: Exchange, wanted: Wanted, previous: int | None) -> Iterator[Asked]:
        had = set() if previous is None else {leaf.text for leaf in request_leaves(self._exchange(previous))}
        yield from asked_texts(exchange, wanted, had)

    def _explain(self, asked: Sequence[Asked], since: Sequence[int], *, exact: bool) -> tuple[list[Explained], bool]:
        """The texts in parts; of each, the first exchange that has it is given."""
        if not asked:
            return [], True
        pieces = [self._known.piece(one.text, first) for one, first in zip(asked, since, strict=True)]
        found, whole = self._spans(pieces, exact=exact)
        chains = Chains(self._tape, self._known)
        links = [[*map(_link, spans)] for spans in self._dated(pieces, found)]
        chains.follow([link for some in links for link in some])
        texts = [
            Explained(one.leaf.place, one.leaf.text, tuple(moved(link.whole(), one.start) for link in some))
            for one, some in zip(asked, links, strict=True)
        ]
        return texts, whole and chains.whole

    def _spans(self, pieces: Sequence[Piece], *, exact: bool = False) -> tuple[list[list[Span]], bool]:
        if not pieces:
            return [], True
        found, whole = find_parts(pieces, self._known.sources(pieces), self._known.has, exact=exact)
        return [[*spans_of(piece.text.text, parts)] for piece, parts in zip(pieces, found, strict=True)], whole

    def _dated(self, pieces: Sequence[Piece], found: Sequence[Sequence[Span]]) -> list[list[Span]]:
        """The spans of each piece with the first of the requests in a row that has them.

        One that was in a request before its source came is from elsewhere: it is looked for once more.
        """
        flat = [(at, span) for at, spans in enumerate(found) for span in spans]
        since = self._rows.since((span.text, pieces[at].number) for at, span in flat)
        older = [self._known.piece(span.text, first) for (_, span), first in zip(flat, since, strict=True)]
        late = [
            span.told is not None and not self._known.has(span.told, piece)
            for (_, span), piece in zip(flat, older, strict=True)
        ]
        again, _ = self._spans([piece for piece, is_late in zip(older, late, strict=True) if is_late])
        anew = iter(again)
        out: list[list[Span]] = [[] for _ in pieces]
        for (at, span), first, is_late in zip(flat, since, late, strict=True):
            spans = [moved(one, span.start) for one in next(anew)] if is_late else [span]
            out[at] += [replace(one, since=first) for one in spans]
        return [_merged(spans) for spans in out]


def _link(span: Span) -> Link:
    return Link(span, span.since or 0)


def _merged(spans: Sequence[Span]) -> list[Span]:
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
