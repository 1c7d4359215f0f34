"""What the page's list says of a tape: read from it once, and little of one that is long or still grows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.tapefile import is_big, load, read_entries
from tapeproxy.proxy.unlocking import Ask
from tapeproxy.tapes.errors import LockedTapeError, TapeFormatError, TapeproxyError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.records import Exit, Head, Request, Seal
from tapeproxy.tapes.usage import usage_of
from tapeproxy.web.library import About


@dataclass(frozen=True, slots=True)
class Reader:
    """How a tape is read: `ask` gives the secrets of encrypted ones, `tape` has it where it has been read already."""

    ask: Ask
    tape: Callable[[], Tape] | None = None


def about(path: Path, reader: Reader, *, writing: bool) -> About:
    """Read a tape for the list. One that can't be read has an outcome that says so."""
    try:
        if writing:
            return _of_growing(path, reader.ask)
        if is_big(path):
            return _of_big(path, reader.ask)
        return _of_whole(load(path, reader.ask)[0] if reader.tape is None else reader.tape())
    except LockedTapeError:
        return About(None, (), "encrypted")
    except TapeFormatError:
        return About(None, (), "damaged")
    except TapeproxyError:  # what the environment says of keys is no good
        return About(None, (), "cannot be opened")


def _of_growing(path: Path, ask: Ask) -> About:
    head = next((entry.record for entry in read_entries(path, ask=ask)), None)
    if not isinstance(head, Head):
        return About(None, (), "recording")
    return About(head.started_at, head.argv, "recording", is_fork=head.parent is not None)


def _of_big(path: Path, ask: Ask) -> About:
    head: Head | None = None
    exit: Exit | None = None
    seal: Seal | None = None
    exchanges = 0
    for entry in read_entries(path, ask=ask):
        match entry.record:
            case Head():
                head = entry.record
            case Request():
                exchanges += 1
            case Exit():
                exit = entry.record
            case Seal():
                seal = entry.record
            case _:
                pass
    if head is None:
        return About(None, (), "damaged")
    return About(head.started_at, head.argv, outcome(seal, exit), exchanges, is_fork=head.parent is not None)


def _of_whole(tape: Tape) -> About:
    head, used = tape.head, usage_of(tape.exchanges)
    return About(
        started_at=head.started_at,
        argv=head.argv,
        outcome=outcome(tape.seal, tape.exit),
        exchanges=len(tape.exchanges),
        tokens_in=sum(one.tokens_in for one in used),
        tokens_out=sum(one.tokens_out for one in used),
        is_fork=head.parent is not None,
    )
