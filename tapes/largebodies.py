"""Bodies of requests that are too large to be held: what is compared of them. Pure.

One of at most `LARGE` bytes, as a recorder holds it, is compared by what it says. Of a larger one, which is streamed,
only size and digest are known: it is the same byte for byte, or another one, whatever rules say. What is new in every
run does not count in it either: the boundary of multipart, and secrets.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from blake3 import blake3

from tapeproxy.tapes.bodyforms import content_type
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.tokens import mask_tokens, open_token

LARGE: Final = 32 << 20
_STAND_IN: Final = re.compile(rb"a body of \d+ bytes with BLAKE3 [0-9a-f]{64}")
_LONGEST: Final = 128
_SHOWN: Final = 40
"""Bytes around a difference that are shown."""


class LargeBody(Protocol):
    """A body that lies elsewhere than in memory."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...

    @property
    def stand_in(self) -> bytes:
        """See `LargeDigest`."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """All of it, in pieces that fit into memory. Raises OSError where it can't be read."""
        ...


class LargeDigest:
    """Takes a body in pieces, however they are cut, and gives what stands for it: its size and digest, as text."""

    def __init__(self, headers: Headers) -> None:
        self._size = 0
        self._digest = blake3()
        self._held = b""
        self._mark, self._between = _boundary(headers)
        self._before = b""

    def feed(self, data: bytes) -> None:
        """Take a piece."""
        data = self._held + self._plain(data) if self._held else self._plain(data)
        at = open_token(data)
        self._held = data[at:]
        self._take(data[:at] if at < len(data) else data)

    def stand_in(self) -> bytes:
        """What stands for the body; nothing more may come."""
        self._take(self._held + self._before)
        self._held = self._before = b""
        return b"a body of %d bytes with BLAKE3 %b" % (self._size, self._digest.hexdigest().encode())

    def _take(self, data: bytes) -> None:
        masked = mask_tokens(data)
        self._size += len(masked)
        self._digest.update(masked)

    def _plain(self, data: bytes) -> bytes:
        """The piece with one boundary for all."""
        if not self._mark:
            return data
        *parts, last = (self._before + data).split(self._mark)
        keep = max(len(last) - len(self._mark) + 1, 0)
        self._before = last[keep:]
        return self._between.join((*parts, last[:keep]))


def stand_in(headers: Headers, pieces: Iterable[bytes]) -> bytes:
    """What stands for a large body."""
    digest = LargeDigest(headers)
    for piece in pieces:
        digest.feed(piece)
    return digest.stand_in()


def is_stand_in(body: bytes) -> bool:
    """Whether this stands for a large body."""
    return len(body) < _LONGEST and _STAND_IN.fullmatch(body) is not None


def first_difference(one: Iterable[bytes], other: Iterable[bytes]) -> tuple[int, bytes, bytes] | None:
    """Where two bodies begin to differ: the place, and some bytes of each from there on; None: nowhere."""
    mine, theirs, at = _Reader(one), _Reader(other), 0
    while (a := mine.more()) == (b := theirs.more()) or (a and b):
        if not a:
            return None
        size = min(len(a), len(b))
        if a[:size] != b[:size]:
            break
        at += size
        mine.take(size)
        theirs.take(size)
    size = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return at + size, a[size : size + _SHOWN], b[size : size + _SHOWN]


class _Reader:
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._data = b""

    def more(self) -> bytes:
        """What comes next; nothing at the end."""
        while not self._data and (data := next(self._pieces, None)) is not None:
            self._data = data
        return self._data

    def take(self, size: int) -> None:
        self._data = self._data[size:]


def _boundary(headers: Headers) -> tuple[bytes, bytes]:
    """What is between the parts of a multipart body, and what stands there for all; nothing where it is none."""
    # Imported late: most runs have no body as large as that.
    from tapeproxy.tapes.multiparts import parse_content_type

    media = parse_content_type(content_type(headers))
    boundary = media.get("boundary") if media.essence.startswith("multipart/") else None
    return (b"--" + boundary.encode("latin-1", "replace"), b"--boundary") if boundary else (b"", b"")
