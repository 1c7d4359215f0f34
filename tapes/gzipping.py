"""gzip framing with every free bit fixed; knows members and flushes, not lines or records.

A tape is two gzip members or more: one deflated stream of all records, then the seal in a member of *stored* blocks.
Stored blocks have no bit that inflate ignores, and the seal holds the hash of all file bytes before it, so every bit
of a sealed file is pinned down (docs/FORMAT.md).
"""

import struct
import zlib

# magic, deflate, no flags, no time, fastest, unknown system: RFC 1952 leaves all of these to the writer.
HEADER = bytes.fromhex("1f8b08000000000004ff")
MAX_RATIO = 400
"""Plain to compressed bytes. Readers refuse more as a decompression bomb, so a writer of endless zeros pads."""

_STORED_MAX = 0xFFFF
_PIECE = 1 << 20
# An empty stored block: legal wherever the stream is byte-aligned, and says nothing (RFC 1951, 3.2.4).
_PADDING = bytes.fromhex("000000ffff")


class Deflater:
    """One open gzip member. Feed lines with `write`; every call returns the bytes that are ready for the file."""

    def __init__(self, level: int = 1) -> None:
        self._stream = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._crc = 0
        self._size = 0
        self.written = 0
        """Bytes that were ready so far."""
        self._pending: list[bytes] = []
        self._emit(HEADER)

    def write(self, data: bytes) -> None:
        """Compress `data`; it reaches the file with the next `flush` or `finish`."""
        self._crc = zlib.crc32(data, self._crc)
        if len(data) <= _PIECE:
            self._size += len(data)
            self._emit(self._stream.compress(data))
            return
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            self._size += len(piece)
            self._emit(self._stream.compress(piece))
            self._pad()

    def flush(self, *, restart: bool = False) -> bytes:
        """All bytes up to here, byte-aligned. `restart` also forgets the window, so that reading can begin here."""
        self._emit(self._stream.flush(zlib.Z_FULL_FLUSH if restart else zlib.Z_SYNC_FLUSH))
        self._pad()
        return self._take()

    def finish(self) -> bytes:
        """The last bytes of the member, with its checksum and size."""
        self._pad()
        self._emit(self._stream.flush(zlib.Z_FINISH))
        self._emit(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))
        return self._take()

    def _pad(self) -> None:
        if self._size > MAX_RATIO * self.written:
            self._emit(self._stream.flush(zlib.Z_SYNC_FLUSH))
            short = self._size // MAX_RATIO - self.written
            self._emit(_PADDING * (short // len(_PADDING) + 1))

    def _emit(self, data: bytes) -> None:
        if data:
            self.written += len(data)
            self._pending.append(data)

    def _take(self) -> bytes:
        out = b"".join(self._pending)
        self._pending.clear()
        return out


def stored_member(data: bytes) -> bytes:
    """A whole gzip member that holds `data` uncompressed, with one byte sequence possible for it."""
    pieces = [data[i : i + _STORED_MAX] for i in range(0, len(data), _STORED_MAX)] or [b""]
    last = len(pieces) - 1
    blocks = [
        struct.pack("<BHH", index == last, len(piece), len(piece) ^ 0xFFFF) + piece
        for index, piece in enumerate(pieces)
    ]
    return b"".join((HEADER, *blocks, struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)))


class Inflater:
    """Reads concatenated gzip members incrementally, one small piece at a time.

    `consumed` counts the file bytes read so far, `taken` are those of the last `read`, `began` is where the present
    member starts, `members` counts the finished ones, and `open` says that the last one is not finished.
    """

    def __init__(self, step: int = 1 << 18, piece: int = 1 << 16) -> None:
        self._step = step
        self._piece = piece
        self._stream = zlib.decompressobj(31)
        self._rest = b""
        self._at = 0
        self._more = False
        self.taken = b""
        self.consumed = 0
        self.began = 0
        self.members = 0
        self.open = False

    def feed(self, data: bytes) -> None:
        """Give the next bytes of the file. Call `read` until it returns None before feeding more."""
        self._rest = self._rest[self._at :] + data
        self._at = 0

    def read(self) -> bytes | None:
        """The next plain text: at most `step` bytes, never across members, perhaps none; None when it needs more.

        Raises zlib.error on damage, but not before everything in front of it has been given out.
        """
        piece = self._rest[self._at : self._at + self._piece]
        if not piece and not self._more:
            return None
        # zlib drops what it had inflated before an error: go back, and come up to the damage in ever smaller pieces.
        before = self._stream.copy() if len(piece) > 1 else self._stream
        try:
            out = self._stream.decompress(piece, self._step)
        except zlib.error:
            if len(piece) <= 1:
                raise
            self._stream, self._piece = before, len(piece) // 2
            return self.read()
        self._advance(piece)
        # zlib may hold back output that did not fit, with no input left.
        self._more = self.open and len(out) == self._step
        return out

    def _advance(self, piece: bytes) -> None:
        # At the end of a member zlib may put the same bytes into unconsumed_tail too.
        left = len(self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail)
        self.taken = piece[: len(piece) - left]
        self._at += len(self.taken)
        self.consumed += len(self.taken)
        self.open = not self._stream.eof
        if not self.open:
            self._stream = zlib.decompressobj(31)
            self.members += 1
            self.began = self.consumed
