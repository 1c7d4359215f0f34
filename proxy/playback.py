"""Sends the parts of an answer when they are due. Knows the loop's clock and backpressure, not HTTP or TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from tapeproxy.tapes.answers import Answer, Part

_SLICE = 1 << 18
_SOON = 0.0005
"""Seconds: a part that is due so soon is sent now. Timers are set as much too early, because the loop waits in whole
milliseconds and rounds up: so the error is spread around zero."""


class Pace(NamedTuple):
    """When parts are due: counted from `start`, a time of the loop's clock.

    `speed`: None is as fast as the client reads, 1.0 as it was recorded, 2.0 twice as fast.
    """

    start: float
    speed: float | None

    def due(self, part: Part) -> float:
        """The time on the loop's clock."""
        return self.start if self.speed is None else self.start + part.due * 1e-9 / self.speed


class Playback:
    """One answer on its way. Every due time is absolute, so a late part never makes the next one late.

    `send` takes bytes. Unless `cancel` came first, `done` is called after the last part, or `failed` with what kept
    it from coming.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: Answer,
        pace: Pace,
        send: Callable[[bytes], None],
        done: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._parts = answer.parts
        self._is_due = answer.is_due
        self._part = next(self._parts, None)
        self._pace = pace
        self._send = send
        self._done = done
        self._failed = failed
        self._offset = 0
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._running = False

    def start(self) -> None:
        """Send what is due, and go on by timer."""
        self._run()

    def pause(self) -> None:
        """The client reads too slowly: send nothing until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """The client has caught up."""
        self._paused = False
        self.look()

    def look(self) -> None:
        """What keeps a part from being due may be over."""
        if self._timer is None and not self._running:
            self._run()

    def cancel(self) -> None:
        """Send nothing more."""
        self._part, self._parts = None, iter(())
        self._done = self._failed = _nothing
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        # A timer calls this, and what is raised into the loop leaves a client waiting.
        try:
            self._send_due()
        except Exception as error:
            failed = self._failed
            self.cancel()
            failed(error)

    def _send_due(self) -> None:
        self._timer = None
        self._running = True
        while not self._paused and (part := self._part) is not None:
            if self._is_due is not None and not self._offset and not self._is_due(part):
                break
            due = self._pace.due(part)
            if due > self._loop.time() + _SOON:
                self._timer = self._loop.call_at(due - _SOON, self._run)
                break
            # A part larger than a slice is sent piece by piece, so that memory stays flat when the client is slow.
            end = self._offset + _SLICE
            self._send(part.data[self._offset : end])
            self._offset = end
            if end >= len(part.data):
                self._part = next(self._parts, None)
                self._offset = 0
        self._running = False
        if self._part is None:
            done, self._done = self._done, _nothing
            done()


def _nothing(*_: object) -> None:
    pass
