"""A WebSocket on a connection of the tape server: frames in, and the server's frames out when they are due."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wsproto.frame_protocol import FrameProtocol

from tapeproxy.proxy.conversation import CODE, REASON, Conversation
from tapeproxy.tapes.violations import Violation
from tapeproxy.tapes.wsframes import FrameReader, Piece, UnreadableError, frames_of

if TYPE_CHECKING:
    from tapeproxy.proxy.connection import Connection
    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.wsrecords import FrameType
    from tapeproxy.tapes.wsscripts import Due

_MOST = 256 << 20
"""Bytes of one message: more could not have been taped."""
_AT_ONCE = 1 << 20
"""Bytes that are joined to one write."""
_SOON = 0.0005


class SocketTalk:
    """What a connection speaks once it is a WebSocket (`Talk`), as its `conversation` has it.

    Pings are answered and never compared. On what is not on the tape the socket is closed with a code of ours.
    """

    reading = False
    deaf = False
    idle = False
    answers = False  # a client that sends no more has left

    def __init__(self, server: TapeServer, connection: Connection, conversation: Conversation) -> None:
        self._server = server
        self._connection = connection
        self._conversation = conversation
        self._reader = FrameReader("server", conversation.opened)
        self._frames: FrameProtocol = frames_of("server", conversation.opened)
        self._message: list[bytes] = []
        self._size = 0
        self._paused = False
        self._pong: bytes | None = None  # due to the last ping of a client that takes nothing (RFC 6455, 5.5.3)
        self._said_close = self._heard_close = False
        self._refused = self._over = False
        self._times = [server.woken()]  # when it opened, and when each of the taped messages was heard
        self._timer: asyncio.TimerHandle | None = None

    # --- what the connection needs (`Talk`) ----------------------------------------------------------------------

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take bytes; all of them are this talk's."""
        try:
            for piece in self._reader.feed(bytes(data)):
                if not self._over:
                    self._hear(piece)
        except UnreadableError as error:
            if not self._refused:
                self._conversation.unreadable(str(error))
            self._refuse()
            self._end("close")
            return b""
        self.go_on()
        return b""

    def pause(self) -> None:
        self._paused = True

    def unpause(self) -> None:
        self._paused = False

    def resume(self) -> None:
        if self._pong is not None and not (self._paused or self._over):
            pong, self._pong = self._pong, None
            self._answer(pong)
        self.go_on()

    def cancel(self) -> None:
        self._over = True
        self._stop_waiting()

    def fail(self, error: Exception) -> None:
        line = self._conversation.request
        violation = Violation("internal", line, f"a bug in tapeproxy: {type(error).__name__}: {error}")
        self._server.replayer.violate(violation)
        self._end("cut")

    def farewell(self) -> bytes:
        return b""

    # --- what is heard -----------------------------------------------------------------------------------------------

    def _hear(self, piece: Piece) -> None:
        if piece.type == "ping":
            self._answer(piece.data)
        elif piece.type == "close":
            self._hear_close(piece)
        elif piece.type != "pong" and not self._refused:
            self._hear_message(piece)

    def _answer(self, ping: bytes) -> None:
        if self._paused:
            self._pong = ping
        elif not self._said_close:
            self._connection.send(bytes(self._frames.pong(ping)))

    def _hear_message(self, piece: Piece) -> None:
        self._message.append(piece.data)
        self._size += len(piece.data)
        if self._size > _MOST:
            self._conversation.unreadable(f"a message is larger than {_MOST} bytes")
            self._refuse()
        elif piece.open is None:
            data = b"".join(self._message)
            self._message, self._size = [], 0
            if self._said_close and not self._conversation.expects_message:
                return  # it and the server's close have crossed
            if self._conversation.hear(piece.type, data):
                self._times.append(self._server.woken())
            else:
                self._refuse()

    def _hear_close(self, piece: Piece) -> None:
        self._heard_close = True
        taped = not self._refused and self._conversation.hear_close(piece.code, piece.data)
        if taped:
            self._times.append(self._server.woken())
        if self._said_close or not taped or not self._conversation.closes:
            # A server has to answer a close, also one that the tape does not have.
            self._close(piece.code, piece.data.decode(errors="replace"))
            self._end("close")

    # --- what is said ------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Send what is due, and come back for what is not yet."""
        self._stop_waiting()
        ready: list[bytes] = []
        size = 0
        conversation = self._conversation
        while not (self._over or self._paused or self._said_close) and (due := conversation.next()) is not None:
            wait = self._wait(due)
            if wait > _SOON:
                self._timer = self._server.loop.call_later(wait - _SOON, self._go_on_later)
                break
            conversation.sent += 1
            if due.type == "untaped":
                self._flush(ready)
                conversation.lost(due.data)
                self._refuse()
                return
            data = self._frame(due)
            size += len(data)
            ready.append(data)
            if size >= _AT_ONCE:
                self._flush(ready)
                size = 0
        self._flush(ready)
        if conversation.over and not self._over:
            self._finish()

    def _go_on_later(self) -> None:
        # A timer calls this, and what is raised into the loop leaves a client waiting.
        try:
            self.go_on()
        except Exception as error:
            self.fail(error)

    def _wait(self, due: Due) -> float:
        """Seconds until a frame is due, counted from what the client had sent before it."""
        if self._server.speed is None:
            return 0.0
        return self._times[due.after] + due.delay * 1e-9 / self._server.speed - self._server.loop.time()

    def _frame(self, due: Due) -> bytes:
        kind: FrameType = due.type
        if kind == "close":
            self._said_close = True
            return bytes(self._frames.close(due.code, due.data.decode(errors="replace") if due.code else None))
        if kind == "ping":
            return bytes(self._frames.ping(due.data))
        payload = due.data.decode(errors="replace") if kind == "text" else due.data
        return bytes(self._frames.send_data(payload, due.whole))

    def _flush(self, ready: list[bytes]) -> None:
        if ready:
            self._connection.send(b"".join(ready))
            ready.clear()

    def _refuse(self) -> None:
        """Say that what was said is not on the tape; what comes before the client closes is not listened to."""
        self._refused = True
        self._close(CODE, REASON)

    def _close(self, code: int | None, reason: str) -> None:
        if not self._said_close:
            self._said_close = True
            self._connection.send(bytes(self._frames.close(code, reason if code is not None else None)))

    def _finish(self) -> None:
        """All is said: the connection ends as it did."""
        how = self._conversation.script.finish
        if how == "close" and not self._heard_close:
            return  # the client has still to answer, or to leave
        if how != "hold":
            self._end(how)

    def _end(self, how: str) -> None:
        if not self._over:
            self._over = True
            self._stop_waiting()
            self._connection.end("close" if how == "close" else "reset" if how == "reset" else "cut")

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
