"""What is worth a word of an exchange, and what of a tape no format of exchanges has a place for."""

from collections.abc import Iterator

from tapeproxy.tapes.exchanges import Exchange, Tape
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


def beside(tape: Tape) -> Iterator[str]:
    """What the tape holds beside exchanges, in a sentence each."""
    if tape.values:
        yield f"{len(tape.values)} values that the agent had from files, programs, tools or messages are left out"
    lanes = {lane.id for lane in tape.lanes}
    if len(lanes) > 1:
        yield f"which of {len(lanes)} lanes asked what is told for people only: an import has no lanes"


def last_moment(exchange: Exchange) -> int:
    """When it ended, or the latest time that is known of one without an end; ns after the tape's start."""
    if exchange.end is not None:
        return exchange.end.t
    times = [chunk.t for chunk in exchange.chunks if chunk.t is not None]
    answered = [] if exchange.response is None else [exchange.response.t]
    return max([exchange.request.t, *answered, *times])
