"""Secrets in the text that events carry piece by piece, as `"sk-"` and `"abc"` in two deltas do. Knows where the pieces
stand in the stream, not what becomes of them.

The pieces of one text are the values of one field name (`content`, `partial_json` …) in events that agree in their
indexes. They are looked through as they are written, escapes and all, so that each byte found stands for one byte of
the stream.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tapeproxy.tapes.finding import HOLD, Finder
from tapeproxy.tapes.secretpatterns import MOST, RUN
from tapeproxy.tapes.spans import Span

_DELTA: Final = re.compile(
    rb'"(content|text|delta|partial_json|arguments|thinking|reasoning|reasoning_content|refusal|transcript|input|output'
    rb'|response|completion|generated_text|outputText|value)"\s*:\s*"'
    rb'([^"\\]*+(?:\\.[^"\\]*+)*+)"'
)
_INDEX: Final = re.compile(rb'"(?:index|\w+_index|contentBlockIndex)"\s*:\s*(\d+)|"item_id"\s*:\s*"([^"]{1,100})"')
_CONTEXT: Final = 96
_TRIMMED: Final = 4 * _CONTEXT
_MOST_TEXTS: Final = 256


class Edit(NamedTuple):
    """The bytes from `start` to `end` of a stream are to be replaced by a part of the token for `secret`.

    That is `token[first:last]` of a token of length `length`. Places are counted from the beginning of the stream.
    """

    start: int
    end: int
    secret: bytes
    length: int
    first: int
    last: int | None

    def holds(self, other: "Edit") -> bool:
        """Whether it replaces all that `other` does, and more."""
        return self[:2] != other[:2] and self.start <= other.start and other.end <= self.end


class _Piece(NamedTuple):
    """A part of a text that stands in the stream from `start` on; `at` is where it begins in the text."""

    at: int
    start: int
    size: int


@dataclass(slots=True)
class _Text:
    """The end of one text, with the pieces that it is made of.

    `done`: up to where its secrets have been told; `open`: where in the stream what may be a secret begins.
    """

    text: bytes = b""
    pieces: list[_Piece] = field(default_factory=list)
    done: int = 0
    open: int | None = None


class Deltas:
    """The texts of one stream. `take` each event when it is there whole."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._short = min(finder.shortest - HOLD, RUN - HOLD)
        self._texts: dict[tuple[bytes, ...], _Text] = {}

    @property
    def open(self) -> int | None:
        """Where in the stream the first text that may end in a secret begins to do so."""
        return min((text.open for text in self._texts.values() if text.open is not None), default=None)

    def take(self, event: bytes, start: int) -> list[Edit]:
        """What is to be replaced, now that `event`, which stands at `start`, is known."""
        edits: list[Edit] = []
        found = [match for match in _DELTA.finditer(event) if match[2]]
        if not found:
            return edits
        indexes = tuple(one[1] or one[2] for one in _INDEX.finditer(event))
        seen: defaultdict[bytes, int] = defaultdict(int)
        for left, match in zip(range(len(found), 0, -1), found, strict=True):
            key = (match[1], b"%d" % seen[match[1]], *indexes)  # of several choices in one event
            seen[match[1]] += 1
            # Of a document with more texts than are kept, the first would be forgotten before they can go on, and what
            # stands in one text alone is found in the stream itself.
            if left <= _MOST_TEXTS or key in self._texts:
                edits += self._add(key, match[2], start + match.start(2))
        return edits

    def finish(self) -> list[Edit]:
        """What is to be replaced of texts that break off in a secret."""
        edits: list[Edit] = []
        for text in self._texts.values():
            if text.open is None:
                continue
            spans = self._finder.ending(text.text)
            edits += (edit for span in spans if span.start >= text.done for edit in _edits(text, span))
        self._texts.clear()
        return edits

    def _add(self, key: tuple[bytes, ...], data: bytes, start: int) -> list[Edit]:
        if key not in self._texts and len(self._texts) >= _MOST_TEXTS:
            self._texts.pop(next(iter(self._texts)))
        text = self._texts.setdefault(key, _Text())
        text.pieces.append(_Piece(len(text.text), start, len(data)))
        text.text += data
        size = len(text.text)
        # A piece of a word or two is looked through when it goes on with something; it is in the stream itself, too.
        idle = text.open is None and len(data) < self._short and b'":' not in text.text
        spans = [] if idle else self._finder.spans(text.text)
        at = self._finder.open_at(text.text, spans)
        at = min((span.start for span in spans if span.start < at < span.end), default=at)
        at = size if size - at > MOST else at
        edits: list[Edit] = []
        for span in spans:
            if span.start >= text.done and span.end <= at:
                edits += _edits(text, span)
                text.done = span.end
        text.open = _place(text, at) if at < size else None
        if size > _TRIMMED:
            _trim(text, min(at, size - _CONTEXT))
        return edits


def _edits(text: _Text, span: Span) -> list[Edit]:
    """The edits for a secret; a token that is longer than it goes on in the last piece."""
    start, end, secret, more = span
    parts = [piece for piece in text.pieces if piece.at < end and piece.at + piece.size > start]
    out: list[Edit] = []
    for piece in parts:
        first, last = max(start, piece.at), min(end, piece.at + piece.size)
        places = piece.start + first - piece.at, piece.start + last - piece.at
        rest = piece is parts[-1] and not more
        out.append(Edit(*places, secret, more or end - start, first - start, None if rest else last - start))
    return out


def _place(text: _Text, at: int) -> int:
    for piece in text.pieces:
        if piece.at <= at < piece.at + piece.size:
            return piece.start + at - piece.at
    return text.pieces[-1].start


def _trim(text: _Text, at: int) -> None:
    """Forget what stands before `at`."""
    if at <= 0:
        return
    text.text = text.text[at:]
    text.done = max(text.done - at, 0)
    text.pieces = [_Piece(p.at - at, p.start, p.size) for p in text.pieces if p.at + p.size > at]
