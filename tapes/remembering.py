"""Big bodies that grow at their end, as conversations do: what was found in one is not looked for again in the next.

Knows texts and places, not what is found.
"""

from collections.abc import Callable
from typing import Final

from tapeproxy.tapes.secretpatterns import MOST
from tapeproxy.tapes.spans import Span

_TEXTS: Final = 64
"""Agents that run side by side have a conversation each; with one text too few, none is known when it comes again."""
_ROOM: Final = 8 << 20
"""Bytes of all of them."""
_LONGEST: Final = 2 << 20
_BLOCK: Final = 8192
_BEFORE: Final = 128
_ENDING: Final = 1024
"""Bytes at a text's end that are not compared: what comes after the conversation in it."""


class Memory:
    """The last few texts, with what was found in them."""

    def __init__(self) -> None:
        # Texts without their endings, the latest last: one that has grown then begins with the whole of what is here.
        self._known: list[tuple[bytes, list[Span]]] = []

    def spans(self, text: bytes, find: Callable[[bytes], list[Span]]) -> list[Span]:
        """What `find` gives for `text`; it is asked about the part that is new, and as much before it as matters."""
        if len(text) > _LONGEST:
            return find(text)
        same, spans, known = 0, list[Span](), None
        for one in reversed(self._known):
            if one[0][same : same + _BLOCK] != text[same : same + _BLOCK]:
                continue  # it shares no more than the best so far
            common = _common(one[0], text)
            if common > same:
                same, spans, known = common, one[1], one
        cut = max(same - MOST, 0)
        cut = min((span.start for span in spans if span.start < cut < span.end), default=cut)
        start = max(cut - _BEFORE, 0)
        found = [Span(s.start + start, s.end + start, s.secret) for s in find(text[start:])] if start else find(text)
        found = [*(span for span in spans if span.end <= cut), *(span for span in found if span.start >= cut)]
        self._keep(text, found, known)
        return found

    def _keep(self, text: bytes, found: list[Span], grown: tuple[bytes, list[Span]] | None) -> None:
        """Remember `text` instead of the one that it has `grown` from, and of the others the latest."""
        kept = [one for one in self._known if one is not grown][-_TEXTS + 1 :]
        room = _ROOM - len(text) - sum(len(one) for one, _ in kept)
        first = 0
        while room < 0:
            room += len(kept[first][0])
            first += 1
        self._known = [*kept[first:], (text[: max(len(text) - _ENDING, 0)], found)]


def _common(one: bytes, other: bytes) -> int:
    """The length of a common beginning, in whole blocks."""
    if other.startswith(one):  # without a copy of what is compared
        return len(one)
    most = min(len(one), len(other))
    for at in range(0, most, _BLOCK):
        if one[at : at + _BLOCK] != other[at : at + _BLOCK]:
            return at
    return most
