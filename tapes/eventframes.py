"""AWS event streams redacted: frames of which each has lengths and checksums. Knows their form, not what they say.

The form is that of `application/vnd.amazon.eventstream` (Smithy, "Amazon Event Stream Specification"): total length,
length of the headers, CRC32 of these eight bytes, headers, payload, CRC32 of all before it, all big-endian. What a
payload has in base64 under `bytes`, as Bedrock sends, is read, too. A token is as long as its secret, or cut to that,
so that no frame changes its length.
"""

import base64
import binascii
import re
import struct
import zlib
from dataclasses import dataclass
from typing import Final

from tapeproxy.tapes.deltas import Deltas, Edit
from tapeproxy.tapes.finding import Finder
from tapeproxy.tapes.streamredaction import Timed, Tokens

_PRELUDE: Final = struct.Struct(">III")
_MOST: Final = 1 << 20
"""Bytes of frames that are held back."""
_BYTES: Final = re.compile(rb'"bytes"\s*:\s*"([A-Za-z0-9+/]+={0,2})"')


@dataclass(slots=True)
class _Frame:
    """A whole frame: its bytes, where its payload begins, and its text, which stands at `start` among all texts.

    `inner`: where in the frame the base64 stands that the text was made of.
    """

    data: bytearray
    payload: int
    text: bytearray
    start: int
    inner: tuple[int, int] | None = None


class FrameRedactor:
    """A body in frames, in pieces of any size."""

    recoded = False

    def __init__(self, finder: Finder, tokens: Tokens) -> None:
        self._finder = finder
        self._tokens = tokens
        self._deltas = Deltas(finder)
        self._held: list[Timed] = []
        self._frames: list[_Frame] = []
        self._rest = b""
        self._edits: list[Edit] = []
        self._place = 0  # in the texts
        self._ready = bytearray()
        self._broken = False

    def feed(self, t: int, data: bytes) -> list[Timed]:
        """Take a piece that came at `t`; return the pieces, with their times, that may be written now."""
        self._held.append((t, data))
        self._rest += data
        while (frame := self._next()) is not None:
            self._take(frame)
        at = self._deltas.open
        self._settle(at if at is not None and sum(len(piece) for _, piece in self._held) <= _MOST else self._place)
        if self._broken or len(self._rest) > _MOST:
            return self._give_up()
        return self._release()

    def finish(self) -> list[Timed]:
        """The pieces still held: nothing follows them."""
        self._edits += self._deltas.finish()
        self._settle(self._place)
        return self._give_up()

    def _next(self) -> _Frame | None:
        """The next frame, once it is there whole."""
        if self._broken or len(self._rest) < _PRELUDE.size:
            return None
        size, headers, check = _PRELUDE.unpack_from(self._rest)
        if size < 16 + headers or size > 16 << 20 or check != zlib.crc32(self._rest[:8]):
            self._broken = True
            return None
        if len(self._rest) < size:
            return None
        data, self._rest = self._rest[:size], self._rest[size:]
        payload = _PRELUDE.size + headers
        text, inner = data[payload:-4], None
        if match := _BYTES.search(text):
            try:
                decoded = base64.b64decode(match[1], validate=True)
            except binascii.Error:
                pass
            else:
                text, inner = decoded, (payload + match.start(1), payload + match.end(1))
        frame = _Frame(bytearray(data), payload, bytearray(text), self._place, inner)
        self._place += len(text)
        return frame

    def _take(self, frame: _Frame) -> None:
        text = bytes(frame.text)
        self._frames.append(frame)
        edits = self._deltas.take(text, frame.start)
        for span in self._finder.spans(text):
            edit = Edit(span.start + frame.start, span.end + frame.start, span.secret, span.end - span.start, 0, None)
            if not any(one.start < edit.end and edit.start < one.end for one in edits):
                edits.append(edit)
        self._edits += edits

    def _settle(self, at: int) -> None:
        """Write the edits into the frames, and make those ready whose texts end before `at`."""
        for edit in self._edits:
            for frame in self._frames:
                if frame.start <= edit.start < frame.start + len(frame.text):
                    self._write(frame, edit)
        self._edits.clear()
        while self._frames and self._frames[0].start + len(self._frames[0].text) <= at:
            self._ready += self._frames.pop(0).data

    def _write(self, frame: _Frame, edit: Edit) -> None:
        start, end = edit.start - frame.start, edit.end - frame.start
        part = self._tokens(edit.secret, edit.length)[edit.first : edit.last][: end - start]
        frame.text[start : start + len(part)] = part
        if frame.inner is None:
            frame.data[frame.payload : -4] = frame.text
        else:
            frame.data[slice(*frame.inner)] = base64.b64encode(frame.text)
        frame.data[-4:] = struct.pack(">I", zlib.crc32(frame.data[:-4]))

    def _release(self) -> list[Timed]:
        out: list[Timed] = []
        while self._held and len(self._held[0][1]) <= len(self._ready):
            t, piece = self._held.pop(0)
            out.append((t, bytes(self._ready[: len(piece)])))
            del self._ready[: len(piece)]
        return out

    def _give_up(self) -> list[Timed]:
        """All that is held: what is no frame is let go with the known secrets out of it."""
        for frame in self._frames:
            self._ready += frame.data
        self._frames.clear()
        rest = bytearray(self._rest)
        for span in self._finder.spans(self._rest):
            part = self._tokens(span.secret, span.end - span.start)[: span.end - span.start]
            rest[span.start : span.start + len(part)] = part
        self._ready += rest
        self._rest = b""
        return self._release()
