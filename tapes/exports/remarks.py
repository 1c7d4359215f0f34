"""What is worth a word of an exchange, and what of a tape no format of exchanges has a place for."""

from collections.abc import Iterator

from tapeproxy.tapes.exchanges import Exchange, Tape, outlines
from tapeproxy.tapes.imports.own import error_text
from tapeproxy.tapes.records import End


def remark(exchange: Exchange) -> str:
    """How it ended, and whom it was with, where that is worth a word."""
    end = exchange.end
    words = [] if end is not None and end.how == "complete" else [ending(end)]
    words += ["with a server of the run itself"] if exchange.request.inside else []
    return "; ".join(words)


def ending(end: End | None) -> str:
    """How an exchange ended: `complete`, `connect-error: connection refused`."""
    if end is None:
        return "unfinished: the tape ends before it"
    return f"{end.how}: {error_text(end)}" if end.error else end.how


def beside(tape: Tape, *, uploads: int = 0) -> Iterator[str]:
    """What a format of exchanges has no place for, in a sentence each. `uploads`: bodies that were sent in pieces."""
    if uploads:
        yield f"{counted(uploads, 'request body', 'request bodies')} sent in pieces: in the file in one"
    if tape.values:
        values = counted(len(tape.values), "value")
        yield f"left out: {values} that the agent had from files, programs, tools or messages"
    lanes = {lane.id for lane in tape.lanes}
    if len(lanes) > 1:
        yield f"which of {len(lanes)} lanes asked what is told for people only: an import has no lanes"


def counted(count: int, what: str, many: str = "") -> str:
    """`1 value`, `2 values`."""
    return f"{count} {what if count == 1 else many or f'{what}s'}"


def sockets(tape: Tape) -> Iterator[str]:
    """That what passed on WebSockets is not in the file, in a sentence, where there was one."""
    count = sum(bool(exchange.frames) for exchange in outlines(tape.exchanges))
    if count:
        yield f"left out: what passed on {counted(count, 'WebSocket')}"


def last_moment(exchange: Exchange) -> int:
    """When it ended, or the latest time that is known of one without an end; ns after the tape's start."""
    if exchange.end is not None:
        return exchange.end.t
    times = [chunk.t for chunk in exchange.chunks if chunk.t is not None]
    times += [frame.t for frame in exchange.frames]
    answered = [] if exchange.response is None else [exchange.response.t]
    return max([exchange.request.t, *answered, *times])
