"""Compressed messages of gRPC redacted: each for itself. Knows how messages are framed, not what they say.

A message has five bytes before it: whether it is compressed, by the coding that `grpc-encoding` names, and its length
(gRPC over HTTP/2, Length-Prefixed-Message). One with a secret in it is compressed anew; the others stay as they came.
"""

from collections.abc import Callable, Iterator
from typing import Final

from tapeproxy.tapes.bodyredaction import header_of
from tapeproxy.tapes.records import Headers

type Timed = tuple[int, bytes]

_PREFIX: Final = 5
_MOST: Final = 1 << 20
"""Bytes that are held back to keep the boundaries of pieces, which a message need not end with."""
_WHOLE: Final = 32 << 20
"""Bytes of one message that are held back. A longer one is let go unseen."""


def coding_of(headers: Headers) -> bytes:
    """The coding of the messages of a call of gRPC; empty where they are none, or not compressed."""
    if not header_of(headers, b"content-type").lower().startswith(b"application/grpc"):
        return b""
    coding = header_of(headers, b"grpc-encoding").strip().lower()
    return b"" if coding == b"identity" else coding


class CompressedMessages:
    """A body of such messages, in pieces of any size. `content` redacts what a message says."""

    recoded = False

    def __init__(self, coding: bytes, content: Callable[[bytes], bytes]) -> None:
        self._coding = ((b"content-encoding", coding),)
        self._content = content
        self._held: list[Timed] = []
        self._data = bytearray()
        self._seen = 0  # bytes of it that are whole messages
        self._clean = bytearray()  # and these, redacted
        self._gone = False

    def feed(self, t: int, data: bytes) -> list[Timed]:
        """Take a piece that came at `t`; return the pieces, with their times, that may be written now."""
        if self._gone:
            return [(t, data)]
        self._held.append((t, data))
        self._data += data
        for message in self._messages():
            self._clean += self._redacted(message)
        if self._seen == len(self._data):
            return self._release()
        if len(self._data) > _WHOLE:
            self._gone = True
            return self.finish()
        return self._release() if len(self._data) > _MOST and self._seen else []

    def finish(self) -> list[Timed]:
        """What is still held: nothing follows it."""
        self._clean += self._data[self._seen :]
        self._seen = len(self._data)
        return self._release()

    def _messages(self) -> Iterator[bytes]:
        while len(self._data) - self._seen >= _PREFIX:
            start = self._seen
            end = start + _PREFIX + int.from_bytes(self._data[start + 1 : start + _PREFIX], "big")
            if end > len(self._data):
                return
            self._seen = end
            yield bytes(self._data[start:end])

    def _redacted(self, message: bytes) -> bytes:
        said = message[_PREFIX:]
        if not message[0]:
            return message[:_PREFIX] + self._content(said)
        from tapeproxy.tapes.codings import decode

        plain = decode(said, self._coding)
        clean = self._content(plain.data)
        if not plain.coding or not plain.whole or clean == plain.data:
            return message
        from tapeproxy.tapes.recoding import encode

        coded = encode(clean, plain.coding)
        return message[:1] + len(coded).to_bytes(_PREFIX - 1, "big") + coded

    def _release(self) -> list[Timed]:
        """The whole messages, in the pieces that they came in if nothing was found, and else in one."""
        if not self._held:
            return []
        held, t = self._held, self._held[-1][0]
        rest, clean = bytes(self._data[self._seen :]), bytes(self._clean)
        same = clean == self._data[: self._seen] and not rest
        self._data, self._clean, self._seen = bytearray(rest), bytearray(), 0
        self._held = [(t, rest)] if rest else []
        return held if same else [(t, clean)] if clean else []
