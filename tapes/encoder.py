"""From records to the bytes of a tape file; knows the order of things, not where the bytes go.

Pure: the caller writes what `flush` and `seal` return, and decides when to flush. What the decoder would refuse is
refused here first, because a tape that cannot be read is worth nothing.
"""

import dataclasses
from collections.abc import Mapping

import orjson
from blake3 import blake3

from tapeproxy.tapes.bodies import forms_of
from tapeproxy.tapes.chain import START, close_line
from tapeproxy.tapes.gzipping import Deflater, stored_member
from tapeproxy.tapes.likes import Likes
from tapeproxy.tapes.records import Head, Json, Record, Request, Seal

RESTART_EVERY = 1 << 20
"""Plain bytes between restart points, so that a big tape can be indexed and read from the middle."""

_ENVELOPE = frozenset("kih")


class TapeEncoder:
    """One tape being written. `add` every record, `flush` when someone outside waits for it, `seal` once.

    Where the head announces `like` and a `window`, request bodies are written by reference if that saves enough.
    """

    def __init__(self, head: Head, *, level: int = 1, behind: tuple[int, bytes] | None = None) -> None:
        """Begin with `head`. Raises ValueError as `add` does.

        `behind` goes on with a tape that has this head: how many lines it has, and the last one's 32 hash bytes. The
        text of those lines is given to `copy` before anything is added.
        """
        self._deflater = Deflater(level)
        self._forms = frozenset(head.must)
        self._likes = Likes(head.window) if head.window is not None and "like" in head.must else None
        self._file = blake3()
        self._hash = START
        self._since_restart = 0
        self._sealed = False
        self.index = 0
        """The index that the next record will get."""
        if behind is None:
            self.add(head)
        else:
            self.index, self._hash = behind

    @property
    def hash(self) -> bytes:
        """The last line's 32 hash bytes."""
        return self._hash

    def add(self, record: Record) -> int:
        """Append one record; returns its index. It is in the bytes that the next `flush` returns.

        Raises ValueError, and appends nothing, for a record that no line can hold: text that is not Unicode, an
        integer past 64 bits, `extra` fields named `k`, `i` or `h`, a body by reference that the head's `must` does not
        announce, or where the encoder makes its own, more bytes than a line may have; and after the seal.
        """
        if self._sealed:
            raise ValueError("the tape is sealed")
        if self._likes is not None and isinstance(record, Request):
            plan = self._likes.plan(record, self._deflater.written)
            line = self._line(dataclasses.replace(record, body=plan.body) if plan.depth else record)
            self._likes.keep(self.index, record, plan)
        else:
            line = self._line(record)
        self._deflater.write(line)
        self._since_restart += len(line)
        self.index += 1
        return self.index - 1

    def copy(self, text: bytes) -> None:
        """Take text of the lines behind, as it is. Flush now and then, for the sake of restart points."""
        self._deflater.write(text)
        self._since_restart += len(text)

    def flush(self) -> bytes:
        """The bytes to append to the file so that it reads up to the last record added; b"" after the seal."""
        if self._sealed:
            return b""
        restart = self._since_restart >= RESTART_EVERY
        if restart:
            self._since_restart = 0
        return self._out(self._deflater.flush(restart=restart))

    def seal(
        self,
        *,
        t: int,
        trace: str,
        outcome: str,
        lanes: Mapping[str, str] | None = None,
        messages: str | None = None,
        uploads: str | None = None,
        extra: Json | None = None,
    ) -> bytes:
        """The last bytes of the file: the rest of the records and the seal, in a gzip member of its own.

        `trace`, `lanes`, `messages` and `uploads` are what a TraceHasher made of the records; `extra`: fields that this
        version of the seal does not know. Raises ValueError when the tape is sealed already.
        """
        if self._sealed:
            raise ValueError("the tape is sealed")
        rest = self._out(self._deflater.finish())
        self._sealed = True
        file = self._file.hexdigest()
        seal = Seal(
            t=t,
            records=self.index,
            trace=trace,
            outcome=outcome,
            lanes=dict(lanes or {}),
            messages=messages,
            uploads=uploads,
            file=file,
            extra=extra or {},
        )
        return rest + stored_member(self._line(seal))

    def _line(self, record: Record) -> bytes:
        if record.extra and not _ENVELOPE.isdisjoint(record.extra):
            raise ValueError("k, i and h are every line's own: no record may have a field of that name")
        if missing := forms_of(record) - self._forms:
            raise ValueError(f"the head's must does not announce bodies of the form {', '.join(sorted(missing))}")
        try:
            obj = orjson.dumps({"k": record.kind, "i": self.index} | record.to_json())
        except TypeError as error:
            raise ValueError(f"a {record.kind!r} record cannot be written as JSON: {error}") from None
        line, self._hash = close_line(self._hash, obj)
        return line

    def _out(self, data: bytes) -> bytes:
        self._file.update(data)
        return data
