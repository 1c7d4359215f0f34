"""The messages of a WebSocket, each whole, put together from the frames on the tape, for whoever looks at them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from blake3 import blake3

from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Frame, Json, Side
from tapeproxy.tapes.wsrecords import FrameType


class Message(NamedTuple):
    """`t`: when its last piece came, ns after the tape's start. `whole`: False, where the tape stops within it.

    `code`: of a close, whose reason is `data`.
    """

    t: int
    to: Side
    type: FrameType
    data: bytes
    code: int | None = None
    whole: bool = True

    @property
    def sender(self) -> str:
        """`client` or `server`."""
        return "server" if self.to == "client" else "client"


def read_frames(frames: Sequence[Frame]) -> list[Message]:
    """The messages, pings, pongs and closes of both directions in the order in which they were complete."""
    out: list[Message] = []
    begun: dict[Side, list[Frame]] = {}
    for frame in sorted(frames, key=lambda frame: frame.n):
        if frame.type not in ("text", "binary"):
            out.append(Message(frame.t, frame.to, frame.type, frame.data, frame.code))
            continue
        pieces = begun.setdefault(frame.to, [])
        pieces.append(frame)
        if frame.open is None:
            out.append(_joined(pieces, whole=True))
            pieces.clear()
    out += [_joined(pieces, whole=False) for pieces in begun.values() if pieces]
    return out


def _joined(pieces: list[Frame], *, whole: bool) -> Message:
    last = pieces[-1]
    return Message(last.t, last.to, last.type, b"".join(piece.data for piece in pieces), whole=whole)


def spoken(frames: Sequence[Frame]) -> Json:
    """What each side said, as JSON, to be compared: messages by value, pings left out, each direction for itself."""
    out: Json = {"client": [], "server": []}
    for message in read_frames(frames):
        if message.type == "close":
            out[message.sender].append({"close": message.code, "reason": message.data.decode(errors="replace")})
        elif message.type in ("text", "binary"):
            out[message.sender].append(_value(message.data))
        elif message.type == "untaped":
            out[message.sender].append({"untaped": message.data.decode(errors="replace")})
    return out


def _value(data: bytes) -> Any:
    value, good = read_json(data)
    if good:
        return value
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"bytes": len(data), "blake3": blake3(data).hexdigest()}
