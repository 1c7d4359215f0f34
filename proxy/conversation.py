"""What a client says on a replayed WebSocket, held against the tape: what counts, and what the server says next.

No socket and no clock. A client's message is the taped one if it is the same as a body would be: JSON by value, under
the tape's rules, with secrets and facts of the machine left out of account; what is binary, byte for byte.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import read_body, read_target
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.requestlines import shorten
from tapeproxy.tapes.tokens import mask_tokens
from tapeproxy.tapes.violations import Drift, Violation
from tapeproxy.tapes.wsrecords import FrameType
from tapeproxy.tapes.wsscripts import Due, Said, Script, script

if TYPE_CHECKING:
    from tapeproxy.tapes.bodyforms import Body
    from tapeproxy.tapes.differences import Difference
    from tapeproxy.tapes.lanes import LaneTag

CODE, REASON = 4470, "Tape Violation"
"""What a socket is closed with on which something was said that is not on the tape: 4000 and up are nobody's own."""
_NEAR = 64
"""Taped messages that are looked through for the one that came."""
_JSON: Headers = ((b"content-type", b"application/json"),)


class Unsaid(NamedTuple):
    """How far a WebSocket of a replay came: `heard` of `client` messages, `sent` of `server` frames."""

    exchange: int
    request: str
    heard: int
    client: int
    sent: int
    server: int

    def to_text(self) -> str:
        """One line."""
        what = f"the WebSocket of exchange {self.exchange}: the client sent {self.heard} of {self.client} messages"
        waiting = self.server - self.sent
        frames = "1 frame of the server waits" if waiting == 1 else f"{waiting} frames of the server wait"
        return f"{what}; {frames} for the next one" if waiting and self.heard < self.client else what


class Reporter(NamedTuple):
    """Who is told, and on whose behalf."""

    violate: Callable[[Violation], Violation]
    drift: Callable[[Drift], None]
    tag: "LaneTag | None"


@dataclass(slots=True)
class Conversation:
    """One WebSocket of a replay. `heard`: so many things of the client's; `sent`: so many frames of the server's."""

    exchange: Exchange
    request: str
    opened: Headers
    redactor: Redactor
    reading: Reading
    reporter: Reporter
    heard: int = 0
    sent: int = 0
    script: Script = field(init=False)

    def __post_init__(self) -> None:
        self.script = script(self.exchange)

    def next(self) -> Due | None:
        """The next frame of the server's, if all is heard that it waits for."""
        if self.sent >= len(self.script.server):
            return None
        due = self.script.server[self.sent]
        return due if due.after <= self.heard else None

    @property
    def closes(self) -> bool:
        """The server's own word that it closes is still to be said."""
        return any(due.type == "close" for due in self.script.server[self.sent :])

    @property
    def over(self) -> bool:
        """Everything on the tape has been said, by both."""
        return self.heard >= len(self.script.client) and self.sent >= len(self.script.server)

    @property
    def expects_message(self) -> bool:
        """The client's next word on the tape is a message."""
        taped = self._expected()
        return taped is not None and taped.type != "close"

    def hear(self, kind: FrameType, data: bytes) -> bool:
        """Take a message of the client's. False: it is not the taped one, and that has been told."""
        taped = self._expected()
        if taped is None:
            self._violate(
                f"the client sends a {kind} message that is not on the tape: {self._ended()}", self._more(data)
            )
            return False
        if taped.type == "close":
            was = "the client closed it there, and now sends more"
            self._violate(f"the client sends a {kind} message that is not on the tape: {was}", self._more(data))
            return False
        if self._is(taped, kind, data):
            self.heard += 1
            return True
        what, differences = self._explain(taped, kind, data)
        self._violate(what, differences)
        return False

    def hear_close(self, code: int | None, reason: bytes) -> bool:
        """The client closes. False: it did not on the tape, not here; how much was left is told at the end (`unsaid`).

        Another code or reason than on the tape is a drift.
        """
        taped = self._expected()
        if taped is None or taped.type != "close":
            return False
        self.heard += 1
        said = self.redactor.content(reason)
        if (code, mask_tokens(said)) != (taped.code, mask_tokens(taped.data)):
            from tapeproxy.tapes.differences import Difference

            was, now = _close_text(taped.code, taped.data), _close_text(code, said)
            what = f"the client closed the WebSocket of exchange {self.exchange.number} another way"
            self.reporter.drift(Drift(self.request, what, (Difference("close", was, now),), self.reporter.tag))
        return True

    def lost(self, why: bytes) -> None:
        """The tape has nothing more of it."""
        self._violate(f"what passed from here on is not on the tape: {why.decode(errors='replace')}")

    def unreadable(self, why: str) -> None:
        """The client sends what is no frame."""
        self._violate(f"what the client sends is no WebSocket frame: {why}")

    def unsaid(self) -> Unsaid | None:
        """What is on the tape and was not said; None where the client has said everything."""
        if self.heard >= len(self.script.client):
            return None
        client, server = len(self.script.client), len(self.script.server)
        return Unsaid(self.exchange.number, self.request, self.heard, client, self.sent, server)

    def _expected(self) -> Said | None:
        return self.script.client[self.heard] if self.heard < len(self.script.client) else None

    def _ended(self) -> str:
        count = sum(said.type != "close" for said in self.script.client)
        return "it has none of the client's" if not count else f"the client sent {count} there, and all were sent again"

    def _is(self, taped: Said, kind: FrameType, data: bytes) -> bool:
        if taped.type != kind:
            return False
        if data == taped.data:
            return True
        clean = self._redacted(data)
        if mask_tokens(clean) == mask_tokens(taped.data):
            return True
        if kind == "binary":
            return False
        was, now = self._read(taped.data), self._read(clean)
        return (was.form, was.canonical) == (now.form, now.canonical)

    def _redacted(self, data: bytes) -> bytes:
        messages = self.redactor.messages()
        # And what stands where a scrubbed tape has a token, which the redactor of one knows.
        return self.redactor.content(b"".join(piece for _, piece in (*messages.feed(0, data), *messages.finish())))

    def _read(self, data: bytes) -> "Body":
        target = read_target(self.exchange.request.url, reading=self.reading)
        local = self.reading.rules.at(target.authority, target.path)
        headers = _JSON if data.lstrip()[:1] in (b"{", b"[") else ()
        return read_body(headers, mask_tokens(data), local, self.reading)[1]

    def _explain(self, taped: Said, kind: FrameType, data: bytes) -> "tuple[str, tuple[Difference, ...]]":
        from tapeproxy.tapes.differences import Difference, body_differences

        place = f"message {self.heard + 1} of the client on the WebSocket of exchange {self.exchange.number}"
        clean = self._redacted(data)
        excerpts = Difference("message", _excerpt(taped.type, taped.data), _excerpt(kind, clean))
        for at, other in enumerate(self.script.client[self.heard + 1 : self.heard + _NEAR], self.heard + 2):
            if other.type != "close" and self._is(other, kind, data):
                what = f"{place} is missing: what the client sends is message {at} on the tape"
                return what, (excerpts,)
        if self.heard and self._is(self.script.client[self.heard - 1], kind, data):
            what = f"the client sends message {self.heard} once more; {place} is another"
            return what, (excerpts,)
        what = f"{place} is not the one on the tape"
        if taped.type != kind:
            return what, (Difference("type", taped.type, kind),)
        if kind == "binary":
            return what, (excerpts,)
        return what, tuple(body_differences(self._read(taped.data), self._read(clean)))

    def _more(self, data: bytes) -> "tuple[Difference, ...]":
        from tapeproxy.tapes.differences import Difference

        return (Difference("message", None, shorten(self._redacted(data).decode(errors="replace"))),)

    def _violate(self, what: str, differences: "tuple[Difference, ...]" = ()) -> None:
        self.reporter.violate(
            Violation("websocket", self.request, what, tag=self.reporter.tag, differences=differences)
        )


def _excerpt(kind: FrameType, data: bytes) -> str:
    if kind == "binary":
        return f"{len(data)} bytes: {data[:16].hex(' ')}{' …' if len(data) > 16 else ''}"
    return shorten(data.decode(errors="replace"))


def _close_text(code: int | None, reason: bytes) -> str:
    return f"{'no code' if code is None else code} {shorten(reason.decode(errors='replace'))}".strip()
