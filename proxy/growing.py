"""A tape that is being recorded, read as it grows. Knows the file; what records mean is `tapes/`'s.

A recorder appends whole flushes, so what is there can be read at any time up to its last one. Nothing is read twice.
"""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tapeproxy.tapes.decoder import Ending, Entry, TapeDecoder
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.exchanges import Chunk, Exchange, Tape, assembling
from tapeproxy.tapes.records import Chunks, End, Frame, Like, Request, Response, Seal

_PIECE = 1 << 18


class _Shelf:
    def __init__(self) -> None:
        self.all: list[Exchange] = []

    def begin(self, exchange: Exchange, like: Like | None) -> None:
        self.all.append(exchange)

    def keep(self, exchange: Exchange, chunk: Chunk) -> Chunk:
        return chunk

    def end(self, exchange: Exchange) -> None:
        pass

    def exchanges(self) -> list[Exchange]:
        return self.all


class GrowingTape:
    """What of a tape has been read so far. Not for several threads at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ending: Ending | None = None
        """How the tape ended, once it has a seal."""
        self._at = 0
        self._inode: int | None = None
        self._decoder = TapeDecoder(str(path))
        self._entries: deque[Entry] = deque()
        self._shelf = _Shelf()
        self._steps = assembling(self._coming(), str(path), self._shelf)
        self._numbers: dict[int, int] = {}
        """By the record of a request, the number of its exchange."""
        self._tape: Tape | None = None

    @property
    def tape(self) -> Tape:
        """What there is. Raises TapeFormatError where not even the head has come."""
        if self._tape is None:
            raise TapeFormatError("the tape has no head yet", place=Place(str(self.path), 1))
        return self._tape

    def advance(self) -> set[int]:
        """Read what was appended; the numbers of the exchanges of which there is something new.

        Raises TapeFormatError for a file that was damaged, shortened or replaced meanwhile.
        """
        changed: set[int] = set()
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size < self._at or self._inode not in (None, status.st_ino):
                raise TapeFormatError("the tape was replaced or shortened meanwhile", place=Place(str(self.path)))
            self._inode = status.st_ino
            file.seek(self._at)
            while piece := file.read(_PIECE):
                self._at += len(piece)
                for entry in self._decoder.feed(piece):
                    changed |= self._take(entry)
        return changed

    def _take(self, entry: Entry) -> set[int]:
        self._entries.append(entry)
        self._tape = next(self._steps)
        self._tape.exchanges = self._shelf.all
        record = entry.record
        if isinstance(record, Request):
            self._numbers[entry.index] = len(self._shelf.all)
            return {len(self._shelf.all)}
        if isinstance(record, Response | Chunks | Frame | End):
            return {self._numbers[record.of]}
        if isinstance(record, Seal):
            self.ending = self._decoder.finish()
        return set()

    def _coming(self) -> Iterator[Entry]:
        # `assembling` asks for one entry each time it is asked for a step, and it is asked when there is one.
        while True:
            yield self._entries.popleft()
