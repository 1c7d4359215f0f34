"""What an addon needs of a tape that is being written; knows no file. `proxy.tapefile.TapeWriter` is one."""

from typing import Protocol, runtime_checkable

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


@runtime_checkable
class ServedTape(Tape, Protocol):
    """A tape that wants to know which requests go to servers of the run."""

    def serving(self, port: int, number: int, request: str) -> None:
        """From our port `port`, as the number-th on its connection, the request `LANE#n` was passed on."""
        ...
