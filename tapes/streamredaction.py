"""Redaction of a body that comes in pieces. Knows places and boundaries, and moves none of them.

What may be the beginning of a secret is held back until it is known, at most `MOST` bytes of it; of a secret whose
first bytes, fewer than `HOLD`, were let go, the rest is redacted. Bodies that must be seen whole are held back whole.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from itertools import accumulate, islice
from typing import Final, Protocol

from tapeproxy.tapes.deltas import Deltas, Edit
from tapeproxy.tapes.finding import Finder
from tapeproxy.tapes.secretpatterns import MOST
from tapeproxy.tapes.spans import Span

type Timed = tuple[int, bytes]
type Tokens = Callable[[bytes, int], bytes]
"""The token for a secret that stands in so many bytes."""

WHOLE: Final = 32 << 20
"""Bytes of a body that are held back because it must be seen whole. A longer one is let go unseen."""
_CONTEXT: Final = 96
"""Bytes that were let go and are looked at again: the name of a field may have come before its value."""
_LINE: Final = 1 << 20
_EVENTS: Final = 1 << 20
"""Bytes of events that are held back: a secret comes in some bytes an event."""


class BodyStream(Protocol):
    """A redactor for one body that comes in pieces. Times are handed through."""

    @property
    def recoded(self) -> bool:
        """Whether the body was compressed anew, so that the boundaries of its pieces are lost."""
        ...

    def feed(self, t: int, data: bytes) -> list[Timed]:
        """Take a piece that came at `t`; return the pieces, with their times, that may be written now."""
        ...

    def finish(self) -> list[Timed]:
        """The pieces still held: nothing follows them."""
        ...


class StreamRedactor:
    """A body as it is. `deltas`: it is made of lines of JSON, with or without `data:` before them.

    `by_line`: and a piece waits until its last line is whole, which is of no use to anybody before.
    """

    recoded = False

    def __init__(self, finder: Finder, tokens: Tokens, deltas: Deltas | None = None, *, by_line: bool = False) -> None:
        self._finder = finder
        self._tokens = tokens
        self._deltas = deltas
        self._by_line = by_line
        self._held: list[Timed] = []
        self._context = b""
        self._start = 0  # of what is held, in the stream
        self._size = 0  # of what is held
        self._line: list[bytes] = []
        self._line_size = 0
        self._line_start = 0
        self._edits: list[Edit] = []

    def feed(self, t: int, data: bytes) -> list[Timed]:
        """Take a piece that came at `t`; return the pieces, with their times, that may be written now."""
        if self._finder.idle:
            return [(t, data)]
        self._held.append((t, data))
        self._size += len(data)
        place = None
        if self._deltas is not None:
            self._take(data, self._deltas)
            place = self._deltas.open
        if place is not None and place < self._start + len(self._held[0][1]) and self._size <= _EVENTS:
            return []  # nothing can be let go, whatever else is found; the events of a long key are looked through once
        text = self._text()
        spans = self._finder.spans(text)
        at = self._finder.open_at(text, spans)
        if place is not None:
            at = min(at, place - self._start + len(self._context))
        if self._by_line and 0 < self._line_size <= MOST:
            at = min(at, self._line_start - self._start + len(self._context))
        for span in spans:
            at = span.start if span.start < at < span.end else at
        if len(text) - at > (MOST if self._deltas is None else _EVENTS) + len(data):
            spans = self._finder.ending(text)
            at = len(text)
        return self._release(text, spans, at)

    def finish(self) -> list[Timed]:
        """The pieces still held: nothing follows them. A secret that the body breaks off in is redacted that far."""
        if not self._held:
            return []
        if self._deltas is not None:
            if self._line:
                self._edits += self._deltas.take(b"".join(self._line), self._line_start)
            self._edits += self._deltas.finish()
        text = self._text()
        return self._release(text, self._finder.ending(text), len(text))

    def _text(self) -> bytes:
        return self._context + b"".join([piece for _, piece in self._held])

    def _take(self, data: bytes, deltas: Deltas) -> None:
        """Look through the lines that `data` completes."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join((*self._line, line))
            if b'"' in whole:
                self._edits += deltas.take(whole, self._line_start)
            self._line_start += len(whole) + 1
            self._line, self._line_size = [], 0
        self._line.append(rest)
        self._line_size += len(rest)
        if self._line_size > _LINE:
            self._line_start += self._line_size
            self._line, self._line_size = [], 0

    def _release(self, text: bytes, spans: list[Span], at: int) -> list[Timed]:
        """The pieces that end before `at`, redacted."""
        before = len(self._context)
        end, count = before, 0
        for _, piece in self._held:
            if end + len(piece) > at:
                break
            end += len(piece)
            count += 1
        if not count:
            return []
        pieces, self._held = self._held[:count], self._held[count:]
        out = pieces
        edits = self._edits_for(spans, before)
        if edits:
            out = self._rewrite(pieces, text[before:end], edits)
        self._start += end - before
        self._size -= end - before
        self._edits = [edit for edit in self._edits if edit.end > self._start]
        self._context = text[max(end - _CONTEXT, 0) : end]
        return out

    def _edits_for(self, spans: list[Span], before: int) -> list[Edit]:
        """All that is to be replaced of what is held, in order. What stands in deltas is known best from those."""
        shift = self._start - before
        own = [_edit(span, shift) for span in spans if span.end > before]
        if not self._edits:
            return own
        known = [
            e for e in self._edits if not any(o.start <= e.start and e.end <= o.end and o[:2] != e[:2] for o in own)
        ]
        own = [edit for edit in own if not any(one.start < edit.end and edit.start < one.end for one in known)]
        return sorted([*own, *known])

    def _rewrite(self, pieces: list[Timed], text: bytes, edits: list[Edit]) -> list[Timed]:
        tokens = cache(self._tokens)  # a secret that came in many events has one, of which each gets a part
        parts = [tokens(edit.secret, edit.length)[edit.first : edit.last] for edit in edits]
        cut = cutter(
            [(e.start - self._start, e.end - self._start, part) for e, part in zip(edits, parts, strict=True)], text
        )
        out: list[Timed] = []
        start = 0
        for t, data in pieces:
            out.append((t, cut(start, start + len(data))))
            start += len(data)
        return out


def _edit(span: Span, shift: int) -> Edit:
    size = span.end - span.start
    return Edit(span.start + shift, span.end + shift, span.secret, span.whole or size, 0, size if span.whole else None)


class WholeBody:
    """A body that must be seen whole. `redact` gives it redacted, and whether it was compressed anew."""

    def __init__(self, redact: Callable[[bytes], tuple[bytes, bool]]) -> None:
        self._redact = redact
        self._held: list[Timed] = []
        self._size = 0
        self._gone = False
        self.recoded = False

    def feed(self, t: int, data: bytes) -> list[Timed]:
        """Take a piece that came at `t`; it is held back."""
        if self._gone:
            return [(t, data)]
        self._held.append((t, data))
        self._size += len(data)
        if self._size <= WHOLE:
            return []
        self._gone = True
        held, self._held = self._held, []
        return held

    def finish(self) -> list[Timed]:
        """The pieces as they came when nothing was found in them; else one, or as many of the same sizes."""
        held, self._held = self._held, []
        if not held:
            return []
        body = b"".join([piece for _, piece in held])
        redacted, self.recoded = self._redact(body)
        if redacted == body:
            self.recoded = False
            return held
        if self.recoded or len(redacted) != len(body):
            return [(held[-1][0], redacted)]
        out: list[Timed] = []
        start = 0
        for t, piece in held:
            out.append((t, redacted[start : start + len(piece)]))
            start += len(piece)
        return out


def cutter(spans: list[tuple[int, int, bytes]], text: bytes) -> Callable[[int, int], bytes]:
    """A function that gives the redacted bytes of text[start:end]; a token is cut where its secret was.

    `spans` are in the order of their beginnings. A piece looks at its own only: a key comes in thousands of events.
    """
    passed = list(accumulate((stop for _, stop, _ in spans), max))

    def cut(start: int, end: int) -> bytes:
        out = bytearray()
        at = start
        for begin, stop, token in islice(spans, bisect_right(passed, start), None):
            if begin >= end:
                break
            if stop <= start:
                continue
            out += text[at : max(at, begin)]
            first = max(start - begin, 0)
            last = len(token) if stop <= end else end - begin
            out += token[first:last]
            at = min(stop, end)
        return bytes(out + text[at:end])

    return cut
