"""One WebSocket on its way to the tape: each frame, or piece of a long one, redacted and committed before it passes on.

What can't be read passes on all the same, and the tape says from where on it is not there.
"""

from collections import deque
from typing import NamedTuple

from tapeproxy.addons.tape import Tape
from tapeproxy.tapes.records import Frame, Headers, Side
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.wsframes import FrameReader, Piece, UnreadableError


class _Held(NamedTuple):
    n: int
    piece: Piece


class TapedSocket:
    """Writes what passes on the WebSocket of request record `of`. `response`: the headers that opened it, in clear.

    `lost` says why nothing more is taped, if so; `closed` whether a side has said that it closes.
    """

    def __init__(self, tape: Tape, redactor: Redactor, of: int, response: Headers) -> None:
        self.lost = ""
        self.closed = False
        self._tape = tape
        self._redactor = redactor
        self._of = of
        self._count = 0
        sides: tuple[Side, Side] = ("server", "client")
        self._readers = {to: FrameReader(to, response) for to in sides}
        self._messages = {to: redactor.messages() for to in sides}
        self._held: dict[Side, deque[_Held]] = {to: deque() for to in sides}

    def take(self, to: Side, data: bytes) -> None:
        """Write what is about to be passed on. It is held back while it may end in half a secret."""
        if self.lost:
            return
        t = self._tape.now()
        try:
            for piece in self._readers[to].feed(data):
                self._add(to, t, piece)
        except UnreadableError as error:
            self.finish()
            self.lost = self._redactor.text(str(error))
            self._write(to, t, _Held(self._number(), Piece("untaped", b"")), self.lost.encode())
        self._tape.commit()

    def finish(self) -> None:
        """Write what was held back: nothing follows."""
        for to in self._messages:
            self._flush(to)

    def _add(self, to: Side, t: int, piece: Piece) -> None:
        held = _Held(self._number(), piece)
        if piece.type in ("text", "binary"):
            self._held[to].append(held)
            self._release(to, self._messages[to].feed(t, piece.data, whole=piece.open is None))
            return
        if piece.type == "close":
            self.closed = True
            self._flush(to)
        self._write(to, t, held, self._redactor.content(piece.data))

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    def _flush(self, to: Side) -> None:
        self._release(to, self._messages[to].finish())
        self._messages[to] = self._redactor.messages()

    def _release(self, to: Side, pieces: list[tuple[int, bytes]]) -> None:
        for t, data in pieces:
            self._write(to, t, self._held[to].popleft(), data)

    def _write(self, to: Side, t: int, held: _Held, data: bytes) -> None:
        piece = held.piece
        frame = Frame(t=t, of=self._of, n=held.n, to=to, type=piece.type, data=data, open=piece.open, code=piece.code)
        self._tape.add(frame)
