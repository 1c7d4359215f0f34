"""What a taped WebSocket says, and when, and what it waits to hear. Pure; knows no socket, and compares nothing.

The order of each direction is the tape's. Between them one rule holds: what the server said is due when the client has
sent all that it had sent before that on the tape. So a client that is faster, or streams while the server talks, is
answered all the same, and one that waits for an answer has it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tapeproxy.tapes.answers import ENDINGS, Finish
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Frame
from tapeproxy.tapes.wsrecords import FrameType


class Said(NamedTuple):
    """A whole message of the client's, or its close: `data` is then the reason."""

    type: FrameType
    data: bytes
    code: int | None
    t: int


class Due(NamedTuple):
    """A frame of the server's. `after`: so many things of the client's came before it; `delay` ns after the last.

    `whole`: the message ends with it.
    """

    type: FrameType
    data: bytes
    code: int | None
    whole: bool
    after: int
    delay: int


class Script(NamedTuple):
    """`finish`: what becomes of the connection when all is said."""

    client: tuple[Said, ...]
    server: tuple[Due, ...]
    finish: Finish


def script(exchange: Exchange) -> Script:
    """The script of an exchange that became a WebSocket. A message that was not whole at its end is not in it.

    A frame that stands on the tape in pieces is one frame, due with its last.
    """
    opened = exchange.request.t if exchange.response is None else exchange.response.t
    client: list[Said] = []
    server: list[Due] = []
    for frame in _joined(exchange.frames):
        if frame.type == "untaped":
            server.append(Due(frame.type, frame.data, None, whole=True, after=len(client), delay=0))
            break
        if frame.to == "client" and frame.type != "pong":
            delay = max(frame.t - (client[-1].t if client else opened), 0)
            server.append(Due(frame.type, frame.data, frame.code, frame.open is None, len(client), delay))
        elif frame.to == "server" and frame.type not in ("ping", "pong"):
            client.append(Said(frame.type, frame.data, frame.code, frame.t))
    how = exchange.end.how if exchange.end is not None else "upstream-cut"
    return Script(tuple(client), tuple(server), "close" if how == "complete" else ENDINGS[how])


def _joined(frames: list[Frame]) -> Iterator[Frame]:
    """In the order in which they came: whole frames of the server's, whole messages of the client's."""
    begun: dict[str, list[Frame]] = {"client": [], "server": []}
    for frame in sorted(frames, key=lambda frame: frame.n):
        if frame.type not in ("text", "binary"):
            yield frame
            continue
        held = begun[frame.to]
        held.append(frame)
        if frame.open == "frame" or (frame.to == "server" and frame.open is not None):
            continue
        data = b"".join(piece.data for piece in held) if len(held) > 1 else frame.data
        held.clear()
        yield Frame(
            t=frame.t, of=frame.of, n=frame.n, to=frame.to, type=frame.type, data=data, open=frame.open, code=frame.code
        )
