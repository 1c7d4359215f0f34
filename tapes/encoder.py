"""From records to the bytes of a tape file; knows the order of things, not where the bytes go.

Pure: the caller writes what `flush` and `seal` return, and decides when to flush.
"""

import orjson
from blake3 import blake3

from tapeproxy.tapes.chain import START, close_line
from tapeproxy.tapes.gzipping import Deflater, stored_member
from tapeproxy.tapes.records import Head, Record, Seal

RESTART_EVERY = 1 << 20
"""Plain bytes between restart points, so that a big tape can be indexed and read from the middle."""


class TapeEncoder:
    """One tape being written. `add` every record, `flush` when someone outside waits for it, `seal` once."""

    def __init__(self, head: Head, *, level: int = 1) -> None:
        self._deflater = Deflater(level)
        self._file = blake3()
        self._hash = START
        self._since_restart = 0
        self.index = 0
        """The index that the next record will get."""
        self.add(head)

    @property
    def hash(self) -> bytes:
        """The last line's 32 hash bytes."""
        return self._hash

    def add(self, record: Record) -> int:
        """Append one record; returns its index. It is in the bytes that the next `flush` returns."""
        line = self._line(record)
        self._deflater.write(line)
        self._since_restart += len(line)
        self.index += 1
        return self.index - 1

    def flush(self) -> bytes:
        """The bytes to append to the file so that it reads up to the last record added."""
        restart = self._since_restart >= RESTART_EVERY
        if restart:
            self._since_restart = 0
        return self._out(self._deflater.flush(restart=restart))

    def seal(self, *, t: int, trace: str, outcome: str) -> bytes:
        """The last bytes of the file: the rest of the records and the seal, in a gzip member of its own."""
        rest = self._out(self._deflater.finish())
        seal = Seal(t=t, records=self.index, trace=trace, outcome=outcome, file=self._file.hexdigest())
        return rest + stored_member(self._line(seal))

    def _line(self, record: Record) -> bytes:
        obj = orjson.dumps({"k": record.kind, "i": self.index} | record.to_json())
        line, self._hash = close_line(self._hash, obj)
        return line

    def _out(self, data: bytes) -> bytes:
        self._file.update(data)
        return data
