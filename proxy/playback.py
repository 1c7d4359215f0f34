"""Sends the parts of an answer when they are due. Knows the loop's clock and backpressure, not HTTP or TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tapeproxy.tapes.answers import Answer

_SLICE = 1 << 18
_SOON = 0.0005
"""Seconds: a part that is due so soon is sent now. Timers are set as much too early, because the loop waits in whole
milliseconds and rounds up: so the error is spread around zero."""


class Playback:
    """One answer on its way. Every due time is absolute, so a late part never makes the next one late.

    `speed`: None sends everything as fast as the client reads, 1.0 as it was recorded, 2.0 twice as fast. `send`
    takes bytes, `done` is called after the last part, unless `cancel` came first.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: Answer,
        speed: float | None,
        send: Callable[[bytes], None],
        done: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._parts = answer.parts
        self._rate = 0.0 if speed is None else 1e-9 / speed
        self._send = send
        self._done = done
        self._start = loop.time()
        self._next = 0
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
        if self._timer is None and not self._running:
            self._run()

    def cancel(self) -> None:
        """Send nothing more."""
        self._parts = ()
        self._done = _nothing
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        self._timer = None
        self._running = True
        while not self._paused and self._next < len(self._parts):
            part = self._parts[self._next]
            due = self._start + part.due * self._rate
            if due > self._loop.time() + _SOON:
                self._timer = self._loop.call_at(due - _SOON, self._run)
                break
            # A part larger than a slice is sent piece by piece, so that memory stays flat when the client is slow.
            end = self._offset + _SLICE
            self._send(part.data[self._offset : end])
            self._offset = end
            if end >= len(part.data):
                self._next += 1
                self._offset = 0
        self._running = False
        if self._next >= len(self._parts) and self._timer is None:
            done, self._done = self._done, _nothing
            done()


def _nothing() -> None:
    pass
