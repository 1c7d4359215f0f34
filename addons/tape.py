"""What an addon needs of a tape that is being written; knows no file. `proxy.tapefile.TapeWriter` is one."""

from typing import Protocol

from tapeproxy.tapes.records import Record


class Tape(Protocol):
    """Records go on with `add`; nothing counts as taped before `commit` has returned."""

    def now(self) -> int:
        """Nanoseconds since the tape was started."""
        ...

    def add(self, record: Record) -> int:
        """Append a record; returns its index, which later records refer to."""
        ...

    def commit(self) -> None:
        """Put everything added so far where it outlives this process."""
        ...
