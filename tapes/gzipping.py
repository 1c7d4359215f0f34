"""gzip framing with every free bit fixed; knows members and flushes, not lines or records.

A tape is two gzip members or more: one deflated stream of all records, then the seal in a member of *stored* blocks.
Stored blocks have no bit that inflate ignores, and the seal holds the hash of all file bytes before it, so every bit
of a sealed file is pinned down (docs/FORMAT.md).
"""

import struct
import zlib

# magic, deflate, no flags, no time, fastest, unknown system: RFC 1952 leaves all of these to the writer.
HEADER = bytes.fromhex("1f8b08000000000004ff")
_STORED_MAX = 0xFFFF


class Deflater:
    """One open gzip member. Feed lines with `write`; every call returns the bytes that are ready for the file."""

    def __init__(self, level: int = 1) -> None:
        self._stream = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._crc = 0
        self._size = 0
        self._pending: list[bytes] = [HEADER]

    def write(self, data: bytes) -> None:
        """Compress `data`; it reaches the file with the next `flush` or `finish`."""
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        if out := self._stream.compress(data):
            self._pending.append(out)

    def flush(self, *, restart: bool = False) -> bytes:
        """All bytes up to here, byte-aligned. `restart` also forgets the window, so that reading can begin here."""
        self._pending.append(self._stream.flush(zlib.Z_FULL_FLUSH if restart else zlib.Z_SYNC_FLUSH))
        return self._take()

    def finish(self) -> bytes:
        """The last bytes of the member, with its checksum and size."""
        self._pending.append(self._stream.flush(zlib.Z_FINISH))
        self._pending.append(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))
        return self._take()

    def _take(self) -> bytes:
        out = b"".join(self._pending)
        self._pending.clear()
        return out


def stored_member(data: bytes) -> bytes:
    """A whole gzip member that holds `data` uncompressed, with one byte sequence possible for it."""
    pieces = [data[i : i + _STORED_MAX] for i in range(0, len(data), _STORED_MAX)] or [b""]
    blocks = [struct.pack("<BHH", piece is pieces[-1], len(piece), len(piece) ^ 0xFFFF) + piece for piece in pieces]
    return b"".join((HEADER, *blocks, struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)))


class Inflater:
    """Reads concatenated gzip members incrementally. Raises zlib.error on damage.

    `consumed` counts file bytes up to the last thing read; `members` the members finished; `open` says that the file
    ends inside one.
    """

    def __init__(self, step: int = 1 << 18) -> None:
        self._step = step
        self._stream = zlib.decompressobj(31)
        self._rest = b""
        self.members = 0
        self.consumed = 0
        self.open = False

    def feed(self, data: bytes) -> None:
        """Give the next bytes of the file. Call `read` until it returns b"" before feeding more."""
        self._rest += data

    def read(self) -> bytes:
        """The next piece of plain text, at most `step` bytes and never across members; b"" when it needs more."""
        while self._rest or self._stream.unconsumed_tail:
            data = self._stream.unconsumed_tail or self._rest
            if data is self._rest:
                self._rest = b""
            self.open = True
            out = self._stream.decompress(data, self._step)
            left = len(self._stream.unconsumed_tail) + len(self._stream.unused_data)
            self.consumed += len(data) - left
            if self._stream.eof:
                self._rest = self._stream.unused_data + self._rest
                self._stream = zlib.decompressobj(31)
                self.members += 1
                self.open = False
            if out:
                return out
        return b""
