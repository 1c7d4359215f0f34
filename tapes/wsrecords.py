"""The kind of record that holds what passed on a WebSocket: a frame, or a piece of a long one."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tapeproxy.tapes.recordfields import Json, dump_body

type Side = Literal["client", "server"]
type FrameType = Literal["text", "binary", "ping", "pong", "close", "untaped"]
type Open = Literal["message", "frame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What came to one side of the WebSocket that request record `of` opened, the `n`-th piece of both directions.

    `open`: what is not whole with it, a message of which more frames follow, or this frame itself. `code` is a close
    frame's, `data` then its reason. Of type `untaped`: nothing more of this WebSocket is on the tape, and `data` says
    why.
    """

    kind: ClassVar[str] = "ws"
    t: int
    of: int
    n: int
    to: Side
    type: FrameType
    data: bytes = b""
    open: Open | None = None
    code: int | None = None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "of": self.of, "n": self.n, "to": self.to, "type": self.type}
        if self.open is not None:
            out["open"] = self.open
        if self.code is not None:
            out["code"] = self.code
        out["data"] = dump_body(self.data)
        return out | self.extra
