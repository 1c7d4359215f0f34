"""Where a secret stands in a text; knows places, not how they are found."""

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """text[start:end] is a secret; `secret` is its plain value, for which a token is made.

    `whole`: that is only the beginning of it, and it would stand in so many bytes.
    """

    start: int
    end: int
    secret: bytes
    whole: int = 0


def settle(text: bytes, spans: Iterable[Span]) -> list[Span]:
    """The spans in order; of two that overlap, the outer one, or one that is both."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not out or span.start >= out[-1].end:
            out.append(span)
        elif span.end > out[-1].end:
            out[-1] = Span(out[-1].start, span.end, text[out[-1].start : span.end])
    return out
