"""The turns of one connection: its requests get their answers one after the other, in order. Knows no socket."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

from tapeproxy.proxy.decisions import Asked, Held, Joined, Live, Upstream
from tapeproxy.proxy.playback import Pace, Playback
from tapeproxy.tapes.answers import Answer, Finish
from tapeproxy.tapes.interleaving import Wait
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.inside import Heard
    from tapeproxy.proxy.tapeserver import TapeServer

_MOST_WAITING = 64
"""Requests that may wait for their turn before no more are read."""
_AT_ONCE = 1 << 20
"""Bytes of an answer that are sent in one go when nothing is paced."""

_FIRST_LOOK = 0.0005
_LONGEST_LOOK = 0.005
_HELD = 2.0
"""Seconds that an answer waits for other flows of the agent which do nothing. More, and they wait for it themselves."""
_GRACE = 0.15
"""Seconds that it waits for what may itself wait for it."""

type Turn = Asked | Joined | Violation | bytes
"""Bytes are an answer that is ready, after which the connection ends."""


class _Patience:
    """How long one answer waits: `_HELD` after others last got on, and `_GRACE` when all that must come has come."""

    def __init__(self) -> None:
        self._until = 0.0
        self._progress = -1
        self._brief: float | None = None
        self._pause = _FIRST_LOOK
        self.over = False

    def ends(self, wait: Wait, progress: int, now: float) -> bool:
        """Whether to wait no more; `over` then says whether it was in vain."""
        if progress != self._progress:
            self._progress, self._until = progress, now + _HELD
        if wait is Wait.BRIEFLY and self._brief is None:
            self._brief = now + _GRACE
        late = now >= self._until or (wait is Wait.BRIEFLY and self._brief is not None and now >= self._brief)
        self.over = late and wait is not Wait.NOT
        return late or wait is Wait.NOT

    def pause(self) -> float:
        """Seconds until the next look."""
        self._pause = min(self._pause * 1.5, _LONGEST_LOOK)
        return self._pause


class Line(Protocol):
    """What a connection does for its answers."""

    @property
    def closing(self) -> bool:
        """Nothing can be sent any more."""
        ...

    def send(self, data: bytes) -> None:
        """Send bytes of an answer."""

    def refuse(self, violation: Violation, *, body: bool = True) -> None:
        """Answer with a violation; without its `body` for HEAD."""

    def end(self, how: Finish, code: int | None = None) -> None:
        """End the connection: close, cut or reset. `code`: of HTTP/2, only the stream was reset, for this reason."""

    def spare(self) -> None:
        """Every request has had its answer."""

    def hold(self) -> None:
        """Nothing more is sent, and the client is waited for to leave."""

    def pause_reading(self) -> None:
        """Hear no more for now."""

    def resume_reading(self) -> None:
        """Hear again."""

    def place(self) -> str:
        """Where the connection leads, for a message."""
        ...

    def switch(self, talk: object) -> None:
        """Speak no HTTP from here on, but have this conversation, or this relay to a server of the run."""


class Turns:
    """Answers requests in the order in which they came; those that come meanwhile wait (pipelining)."""

    def __init__(self, server: TapeServer, line: Line) -> None:
        self._server = server
        self._line = line
        self._waiting: deque[tuple[Turn, bool]] = deque()
        self._busy = False
        self._held_back = False  # too many requests wait
        self._paused = False  # the client reads too slowly
        self._flowing = asyncio.Event()  # it does not
        self._flowing.set()
        self._playback: Playback | None = None
        self._task: asyncio.Task[None] | None = None
        self._code: int | None = None  # of the reset with which the answer ends

    @property
    def idle(self) -> bool:
        """No answer is under way or due."""
        return not self._busy and not self._waiting

    @property
    def live(self) -> bool:
        """The answer comes from a server of the run."""
        return self._task is not None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, turn: Turn, keep: bool) -> None:
        """Answer this when its turn comes, and keep the connection open after it or not."""
        self._waiting.append((turn, keep))
        if len(self._waiting) > _MOST_WAITING and not self._held_back:
            self._held_back = True
            self._line.pause_reading()
        self._next()

    def pause(self) -> None:
        """The client reads too slowly: send nothing until `resume`."""
        self._paused = True
        self._flowing.clear()
        if self._playback is not None:
            self._playback.pause()

    def unpause(self) -> None:
        """The client has caught up; `resume` follows."""
        self._paused = False
        self._flowing.set()

    def resume(self) -> None:
        """Go on, unless there was another `pause`."""
        if self._paused or self._line.closing:
            return
        if self._playback is not None:
            self._playback.resume()
        else:
            self._next()

    def look(self) -> None:
        """The client has said more, for which a part of the answer may have waited."""
        if self._playback is not None:
            self._playback.look()

    def cancel(self) -> None:
        """The connection is gone."""
        if self._playback is not None:
            self._playback.cancel()
        if self._task is not None:
            self._task.cancel()

    def fail(self, error: Exception, turn: Turn | None = None) -> None:
        """What nobody foresaw must not leave the client waiting, nor the run looking clean."""
        line = self._line.place()
        if isinstance(turn, Asked):
            line = f"{turn.method.decode('latin-1')} {turn.url.decode('latin-1')}"
        violation = Violation("internal", line, f"a bug in tapeproxy: {type(error).__name__}: {error}")
        self._server.replayer.violate(violation)
        if self._line.closing:
            return
        if self._playback is None and self._task is None:
            self._line.refuse(violation)
            self._finish("close")
        else:
            self._finish("cut")

    def _next(self) -> None:
        if self._busy or self._paused or not self._waiting or self._line.closing:
            return
        self._busy = True
        turn, keep = self._waiting.popleft()
        if self._held_back and len(self._waiting) <= _MOST_WAITING // 2:
            self._hear_again()
        try:
            self._answer(turn, keep)
        except Exception as error:
            self.fail(error, turn)

    def _hear_again(self) -> None:
        self._held_back = False
        self._line.resume_reading()

    def _answer(self, turn: Turn, keep: bool) -> None:
        if isinstance(turn, bytes):
            self._line.send(turn)
            self._finish("close")
            return
        if isinstance(turn, Violation):
            self._line.refuse(turn)
            self._finish("close")
            return
        if isinstance(turn, Joined):
            self._obey(turn.decision, keep)
            return
        self._server.before_request()
        if not self._server.replayer.is_certain(turn):
            self._server.waiting.append(lambda: self._look_again(turn, keep))
            return
        decision = (self._server.decide or self._server.replayer.decide)(turn)
        if isinstance(decision, Violation):
            self._line.refuse(decision, body=turn.method != b"HEAD")
            self._finish("close")
        elif isinstance(decision, Live) and _is_upgrade(turn):
            from tapeproxy.proxy.inside import Relay, request_head

            # What follows is no HTTP: the client and the server of the run have it between them.
            said = turn.body if isinstance(turn.body, bytes) else b""
            self._line.switch(Relay(decision.host, decision.port, request_head(turn) + said))
        elif isinstance(decision, Live):
            self._task = self._server.loop.create_task(self._live(turn, decision, keep))
        elif isinstance(decision, Upstream):
            raise TypeError("a tape server has no way upstream")
        else:
            self._obey(decision, keep)

    def _obey(self, decision: Answer | Held, keep: bool) -> None:
        if isinstance(decision, Held):
            self._hold(decision, keep, _Patience())
        else:
            self._play(decision, keep)

    def _look_again(self, turn: Asked, keep: bool) -> None:
        """More of the tape is known than when this request came."""
        if self._line.closing:
            return
        try:
            self._answer(turn, keep)
        except Exception as error:
            self.fail(error, turn)

    def _hold(self, held: Held, keep: bool, patience: _Patience) -> None:
        """Send an answer when the other flows have done what they did before, on the tape; or when they don't."""
        replayer = self._server.replayer
        if self._line.closing:
            replayer.order.delivered(held.exchange)
            return
        try:
            self._server.before_request()
            if not self._paused and patience.ends(
                replayer.wait(held.exchange), replayer.order.progress, self._server.loop.time()
            ):
                if patience.over:
                    replayer.order.give_up(held.exchange)
                replayer.order.delivered(held.exchange)
                self._play(held.answer, keep)
                return
        except Exception as error:
            self.fail(error)
            return
        self._server.loop.call_later(patience.pause(), self._hold, held, keep, patience)

    def _play(self, answer: Answer, keep: bool) -> None:
        finish = answer.finish if keep or answer.finish != "keep" else "close"
        self._code = answer.code
        if self._server.speed is None and answer.size <= _AT_ONCE and not answer.delay and answer.is_due is None:
            self._line.send(b"".join([part.data for part in answer.parts]))
            self._finish(finish, answer.talk)
            return
        pace = Pace(self._server.woken() + answer.delay * 1e-9, self._server.speed)
        loop, send = self._server.loop, self._line.send
        self._playback = Playback(loop, answer, pace, send, lambda: self._finish(finish, answer.talk), self.fail)
        if self._paused:
            self._playback.pause()
        self._playback.start()

    async def _live(self, asked: Asked, live: Live, keep: bool) -> None:
        from tapeproxy.proxy.inside import Outlet, relay_exchange

        def compare(heard: Heard) -> None:
            self._server.replayer.compare(live, heard.status, heard.headers, heard.body)

        def connected(port: int) -> None:
            if live.tag is not None:
                self._server.replayer.serving(port, 0, f"{live.tag.lane}#{live.tag.n}")

        try:
            outlet = Outlet(self._line.send, self._flowing.wait)
            again = await relay_exchange(asked, live.host, live.port, outlet, compare, connected)
        except Exception as error:
            self.fail(error, asked)
            return
        self._finish("cut" if again is None else "keep" if keep and again else "close")

    def _finish(self, how: Finish, talk: object = None) -> None:
        self._playback = None
        self._task = None
        if self._line.closing:
            return
        match how:
            case "keep":
                self._busy = False
                if self._waiting:
                    # Not a direct call: a hundred pipelined requests would be a hundred frames deep.
                    self._server.loop.call_soon(self._next)
                else:
                    self._line.spare()
            case "hold":
                # connection_lost ends it, so the end of the connection must be heard.
                if self._held_back:
                    self._hear_again()
                self._line.hold()
            case "switch":
                self._line.switch(talk)
            case _:
                self._line.end(how, self._code)


def _is_upgrade(asked: Asked) -> bool:
    return any(name.lower() == b"upgrade" and value.lower() == b"websocket" for name, value in asked.headers)
