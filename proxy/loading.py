"""A big tape that is read while it is served. Knows when to read on, not what is asked of the tape meanwhile.

Reading a tape of a gigabyte takes seconds, inflating it alone three. An agent asks for its answers in about the order
of the tape, so they can be given out long before the end is reached, where what comes later makes no difference. Every
line is checked as ever: damage at the end is found when the end is reached, and fails a run that has heard all before.
"""

import time
from pathlib import Path

from tapeproxy.proxy.spool import Spool
from tapeproxy.proxy.tapefile import read_entries
from tapeproxy.proxy.watching import WATCHER
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.exchanges import Tape, assembling


class Loading:
    """A tape of which the head is known, and what has been read since."""

    def __init__(self, path: Path) -> None:
        """Open it and read its head. Raises TapeFormatError."""
        self._endings: list[Ending] = []
        self._spool = Spool()
        self._steps = assembling(read_entries(path, self._endings), str(path), self._spool)
        watcher = WATCHER.set(None)  # a bar would be drawn over what the agent prints
        try:
            self.tape: Tape = next(self._steps)
        finally:
            WATCHER.reset(watcher)
        self.tape.exchanges = self._spool.so_far()

    @property
    def settled(self) -> int:
        """How many exchanges, from the first on, nothing is added to any more."""
        return self._spool.settled if self.ending is None else len(self.tape.exchanges)

    @property
    def ending(self) -> Ending | None:
        """How the file ends, once that is known."""
        return self._endings[0] if self._endings else None

    def read_on(self, seconds: float) -> bool:
        """Read for about so long; returns whether there is more. Raises TapeFormatError."""
        until = time.monotonic() + seconds
        return any(time.monotonic() >= until for _ in self._steps)
