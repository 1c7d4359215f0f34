"""The frames of a tape that was encrypted while it was recorded; knows no cipher, file, passphrase or random number.

docs/FORMAT.md ("Encrypted tapes", version 2) is the specification. What is acknowledged has to be in the file, so each
write is a frame of its own, sealed under a nonce that is never used again; a file that grows can't have chunks of one
size. A recorder that was killed leaves no last frame: what is there is read, as of a plain tape, and the tape within
says that it was interrupted. So frames can't be changed, moved, left out or repeated, but a cut between two of them is
only as well known as it is of a plain tape: by the seal that is missing.
"""

from collections.abc import Iterator

from tapeproxy.tapes.encrypted import TAG, Close, Header, Keys, Open, changed

FRAME = 1 << 16
"""The most plain bytes in a frame."""
_LENGTH = 4


class Framer:
    """Makes the frames of an encrypted tape that is being written."""

    def __init__(self, header: Header, keys: Keys, close: Close) -> None:
        self.begin = header.pack(keys.check)
        """The header."""
        self._keys = keys
        self._close = close
        self._number = 0

    def frames(self, data: bytes) -> bytes:
        """Frames with `data`, each for itself readable; none for nothing."""
        pieces = (data[at : at + FRAME] for at in range(0, len(data), FRAME))
        return b"".join([self._frame(piece, last=False) for piece in pieces])

    def finish(self) -> bytes:
        """The last frame, an empty one: nothing comes after it."""
        return self._frame(b"", last=True)

    def _frame(self, plain: bytes, *, last: bool) -> bytes:
        nonce = self._keys.nonce(self._number, last=last)
        self._number += 1
        length = len(plain).to_bytes(_LENGTH)
        return length + self._close(nonce, plain, self.begin + length)


class Unframer:
    """Reads frames in pieces of any size; gives out nothing that it has not checked. `source` names the tape."""

    def __init__(self, header: Header, keys: Keys, open: Open, source: str = "tape") -> None:
        self._header = header.pack(keys.check)
        self._keys = keys
        self._open = open
        self._source = source
        self._held = bytearray()
        self._at = len(self._header)
        self._number = 0
        self._over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield plain bytes. Exhaust it before feeding more. Raises TapeFormatError."""
        self._held += data
        while len(self._held) >= _LENGTH:
            length = bytes(self._held[:_LENGTH])
            size = int.from_bytes(length) + TAG
            if self._over or size > FRAME + TAG:
                raise changed(self._source, self._at)
            if len(self._held) < _LENGTH + size:
                return
            sealed = bytes(self._held[_LENGTH : _LENGTH + size])
            del self._held[: _LENGTH + size]
            yield self._plain(sealed, length)
            self._at += _LENGTH + size
            self._number += 1

    def finish(self) -> bytes:
        """Nothing: what is left is of a frame that was not written whole. Raises TapeFormatError past the last one."""
        if self._over and self._held:
            raise changed(self._source, self._at)
        return b""

    def _plain(self, sealed: bytes, length: bytes) -> bytes:
        # Only the last frame is empty.
        self._over = len(sealed) == TAG
        try:
            nonce = self._keys.nonce(self._number, last=self._over)
        except ValueError:
            raise changed(self._source, self._at) from None
        plain = self._open(nonce, sealed, self._header + length)
        if plain is None:
            raise changed(self._source, self._at)
        return plain
