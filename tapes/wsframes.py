"""WebSocket frames: read as they go by, and written. Knows RFC 6455 by way of wsproto, not sockets or tapes.

A long frame is given out in pieces, as it comes, so that it need not be in memory whole.
"""

import base64
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from wsproto.extensions import Extension, PerMessageDeflate
from wsproto.frame_protocol import CloseReason, Frame, FrameDecoder, FrameProtocol, Opcode, RsvBits

from tapeproxy.tapes.records import Headers, Side
from tapeproxy.tapes.wsrecords import FrameType, Open

EXTENSIONS = b"sec-websocket-extensions"
_DEFLATE = b"permessage-deflate"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NO_CODE = 1005
_PIECE = 1 << 18
"""Characters or bytes of a piece at most: what was compressed may be a thousand times as long as what came."""
_SLICE = 1 << 12
"""Bytes that are inflated at once, where there is compression: they may become 4 MiB."""


class UnreadableError(ValueError):
    """What came is no WebSocket frame, or one of an extension that is not known here."""


class Piece(NamedTuple):
    """A frame, or a piece of one: `open` says what is not whole with it. `code`: of a close frame, where it had one."""

    type: FrameType
    data: bytes
    open: Open | None = None
    code: int | None = None


class _Deflate(PerMessageDeflate):
    """wsproto's own takes a ping between two frames of a compressed message for the message's end."""

    _control = False

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        self._control = opcode.iscontrol()
        if self._control:
            return CloseReason.PROTOCOL_ERROR if rsv.rsv1 else RsvBits(True, False, False)
        return super().frame_inbound_header(proto, opcode, rsv, payload_length)

    def frame_inbound_payload_data(self, proto: FrameDecoder | FrameProtocol, data: bytes) -> bytes | CloseReason:
        return data if self._control else super().frame_inbound_payload_data(proto, data)

    def frame_inbound_complete(self, proto: FrameDecoder | FrameProtocol, fin: bool) -> bytes | CloseReason | None:
        return None if self._control else super().frame_inbound_complete(proto, fin)


class FrameReader:
    """What one side of a WebSocket sends: bytes in, pieces out. `response` are the headers that opened it."""

    def __init__(self, to: Side, response: Headers) -> None:
        self._to: Side = to
        self._response = response
        self._frames: FrameProtocol | None = None
        self._closed = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Take bytes; yield what they hold. Raises UnreadableError. What comes after a close says nothing."""
        if self._closed:
            return
        try:
            if self._frames is None:
                self._frames = frames_of(self._to, self._response)
            step = _SLICE if self._frames.extensions else len(data) or 1
            for at in range(0, len(data), step):
                self._frames.receive_bytes(data[at : at + step])
                for frame in self._frames.received_frames():
                    yield from _pieces(frame)
                    if frame.opcode is Opcode.CLOSE:
                        self._closed = True
                        return
        except UnreadableError:
            raise
        except Exception as error:  # wsproto's own, and what a hostile frame makes of its asserts
            raise UnreadableError(str(error) or type(error).__name__) from None


def frames_of(to: Side, response: Headers) -> FrameProtocol:
    """wsproto's end of a WebSocket, of the side that hears what comes `to` it. Raises UnreadableError."""
    return FrameProtocol(to == "client", _extensions(response))


def _extensions(response: Headers) -> list[Extension]:
    """What a response's headers agree to, made anew. Raises UnreadableError for another than permessage-deflate."""
    said = [part.strip() for name, value in response if name.lower() == EXTENSIONS for part in value.split(b",")]
    found: list[Extension] = []
    for one in filter(None, said):
        if one.partition(b";")[0].strip().lower() != _DEFLATE:
            raise UnreadableError(f"the extension {one[:80].decode('latin-1')!r} is not known")
        deflate = _Deflate()
        try:
            deflate.finalize(one.decode("latin-1").replace('"', ""))
        except (ValueError, IndexError) as error:
            raise UnreadableError(f"the parameters of permessage-deflate cannot be read: {error}") from None
        found.append(deflate)
    return found


def _pieces(frame: Frame) -> Iterator[Piece]:
    match frame.opcode, frame.payload:
        case Opcode.CLOSE, (int(code), str(reason)):
            yield Piece("close", reason.encode(), code=None if code == _NO_CODE else int(code))
        case Opcode.PING | Opcode.PONG, bytes(data):
            yield Piece("ping" if frame.opcode is Opcode.PING else "pong", data)
        case Opcode.TEXT, str(text):
            yield from _message("text", frame, [part.encode() for part in _cut(text)])
        case _, bytes(data):
            yield from _message("binary", frame, _cut(data))
        case _:
            raise UnreadableError(f"unexpected {frame.opcode.name}")


def _cut[T: (str, bytes)](data: T) -> list[T]:
    return [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)] or [data]


def _message(kind: FrameType, frame: Frame, parts: list[bytes]) -> Iterator[Piece]:
    last: Open | None = None if frame.message_finished else "message" if frame.frame_finished else "frame"
    for part in parts[:-1]:
        yield Piece(kind, part, "frame")
    yield Piece(kind, parts[-1], last)


def accept_token(key: bytes) -> bytes:
    """What a server says to a client's Sec-WebSocket-Key (RFC 6455, 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
