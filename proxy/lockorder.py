"""The order of locks on a tape: whether a replay keeps it, and the file in which the shim looks it up."""

from pathlib import Path

import orjson

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hints import Absent, nowhere
from tapeproxy.tapes.lockturns import without_lanes


def keeps_order(tape: Tape, wanted: bool | None, path: Path) -> bool:
    """Whether a replay of the tape at `path` keeps its order of locks. `wanted` None: if there is one.

    Raises UsageError where it is wanted and the tape has none.
    """
    if wanted and not tape.head.threads:
        raise UsageError(
            "the tape holds no order of locks to keep", where=str(path), fix="make one with record --threads"
        )
    return tape.head.threads if wanted is None else wanted


def write_order(tape: Tape, path: Path, absent: Absent = nowhere) -> None:
    """Write who acquired which lock, in the order of the tape, for this user's eyes only.

    `absent`: whether a lane is not going to run.
    """
    path.touch(mode=0o600)
    with path.open("wb") as file:
        for edge in without_lanes((edge for edge in tape.edges if edge.asked is None), absent):
            line = {"on": edge.on, "what": edge.what, "lane": edge.lane, "n": edge.n}
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
