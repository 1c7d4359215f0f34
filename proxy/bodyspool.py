"""A request's body as it comes in: in memory, and in a file without a name once it is large. Knows no request.

What is compared of a large one is worked out while it comes, so nobody has to hold it for that.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.largebodies import LARGE, LargeDigest
from tapeproxy.tapes.records import Headers

if TYPE_CHECKING:
    from tapeproxy.proxy.spool import SpoolFile

_IN_MEMORY = 8 << 20
_PIECE = 1 << 20


class SpooledBody(NamedTuple):
    """A `LargeBody` in a file."""

    file: "SpoolFile"
    size: int
    stand_in: bytes

    def pieces(self) -> Iterator[bytes]:
        """All of it. Raises OSError where it can't be read."""
        for at in range(0, self.size, _PIECE):
            yield self.file.get((at, min(_PIECE, self.size - at)))


class BodySpool:
    """Takes the body of a request with these headers. `size`: its bytes so far."""

    __slots__ = ("_digest", "_file", "_headers", "_held", "size")

    def __init__(self, headers: Headers) -> None:
        self.size = 0
        self._headers = headers
        self._held: list[bytes] = []
        self._file: SpoolFile | None = None
        self._digest: LargeDigest | None = None

    def take(self, data: bytes) -> None:
        """Take a piece. A disk that is full makes it stay in memory."""
        self.size += len(data)
        if self._file is not None:
            self._file.put(data)
        else:
            self._held.append(data)
            if self.size > _IN_MEMORY:
                # Imported late: most replays need no file.
                from tapeproxy.proxy.spool import SpoolFile

                self._file = SpoolFile()
                for piece in self._held:
                    self._file.put(piece)
                self._held = []
        if self._digest is not None:
            self._digest.feed(data)
        elif self.size > LARGE and self._file is not None:
            self._digest = LargeDigest(self._headers)
            for piece in SpooledBody(self._file, self.size, b"").pieces():
                self._digest.feed(piece)

    @property
    def in_memory(self) -> bytes | None:
        """What has come; None when that is too much to be looked at again and again."""
        if self._file is not None:
            return None
        self._held = [b"".join(self._held)] if len(self._held) > 1 else self._held
        return self._held[0] if self._held else b""

    def finish(self) -> bytes | SpooledBody:
        """The body; nothing more may come. Raises OSError where it can't be read back."""
        if self._file is None:
            return self.in_memory or b""
        if self._digest is None:
            return self._file.get((0, self.size))
        return SpooledBody(self._file, self.size, self._digest.stand_in())
