"""A stream as it came: its pieces, and which of them are there at a moment. Pure; the clock is the caller's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tapeproxy.cli.pages import answer_lines, chunk_line
from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import Screen, block, count, duration, size
from tapeproxy.cli.socketpages import message_line
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.messages import read_frames
from tapeproxy.web.pieces import pieces

_LONGEST: Final = 4000
"""Characters of a piece that are shown."""
_SAID: Final = 1000
"""Pieces up to which the words are put together anew at each."""
_HEX: Final = 24


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk of an answer, or a message on a WebSocket. `t`: ns after the start of the run; None: not told."""

    t: int | None
    text: str
    answered: bool = False
    """Whether it is a chunk of the answer's body."""


@dataclass(frozen=True, slots=True)
class Playing:
    """A stream that is played. `begun`: in seconds, as told to `shown`; `speed` 10: ten times as fast."""

    times: Sequence[int]
    """Of each piece, ns after the first one."""
    begun: float
    speed: float = 1

    @classmethod
    def of(cls, found: Sequence[Piece], begun: float, speed: float) -> "Playing":
        """From its first piece on; what has no time comes with the one before it."""
        told = [piece.t for piece in found if piece.t is not None]
        first = told[0] if told else 0
        times: list[int] = []
        for piece in found:
            times.append(max(times[-1] if times else 0, 0 if piece.t is None else piece.t - first))
        return cls(times, begun, speed)

    def shown(self, now: float) -> int:
        """How many pieces have come."""
        gone = (now - self.begun) * 1e9 * self.speed
        return sum(time <= gone for time in self.times)

    def wait(self, now: float) -> float | None:
        """Seconds until the next one; None: there is none."""
        at = self.shown(now)
        return None if at == len(self.times) else max(0.0, self.times[at] / 1e9 / self.speed - (now - self.begun))


def stream_pieces(exchange: Exchange, screen: Screen) -> list[Piece]:
    """What came, piece by piece, safe to show."""
    start = exchange.request.t
    found = [Piece(message.t, message_line(start, message, screen)) for message in read_frames(exchange.frames)]
    sent = (Piece(chunk.t, chunk_line(start, chunk, screen) + "  sent") for chunk in exchange.uploads)
    found += sent
    for piece, chunk in zip(pieces(exchange), exchange.chunks, strict=False):
        when = "?" if chunk.t is None else f"+{duration(max(0, chunk.t - start))}"
        text = piece.get("text")
        shown = (
            f"    {chunk.data[:_HEX].hex(' ')}" if text is None else block(mark(text[:_LONGEST]).rstrip("\n"), "    ")
        )
        found.append(Piece(chunk.t, f"{when:>9}  {size(piece['size'])}\n{shown}", answered=True))
    return found


def stream_lines(exchange: Exchange, found: Sequence[Piece], shown: int, screen: Screen) -> Iterator[str]:
    """The first pieces of a stream, and what they add up to while it comes."""
    last = next((piece.t for piece in reversed(found[:shown]) if piece.t is not None), None)
    after = "" if last is None else f", {duration(max(0, last - exchange.request.t))} after the request"
    yield f"{shown} of {count(len(found), 'piece')}{after}"
    yield from (piece.text for piece in found[:shown])
    heard = sum(piece.answered for piece in found[:shown])
    if heard > 0 and shown < len(found) <= _SAID:
        call = read_call(replace(exchange, chunks=exchange.chunks[:heard], end=None))
        if call is not None and call.answer is not None:
            yield ""
            yield from answer_lines(call, screen)
