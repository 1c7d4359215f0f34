"""Plays a stream on the page of the terminal viewer, at the pace of the tape. Knows timers, no stream."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from tapeproxy.cli.tuiplay import Piece, Playing

if TYPE_CHECKING:
    from tapeproxy.cli.tuiapp import Viewer

_LEAST: Final = 0.004
"""Seconds between two pictures."""


class Player:
    """The stream of the chosen exchange, while it is played."""

    def __init__(self, app: "Viewer") -> None:
        self._app = app
        self._pieces: Sequence[Piece] = ()
        self._playing: Playing | None = None
        self._timer: Timer | None = None

    @property
    def plays(self) -> bool:
        """Whether one is."""
        return self._playing is not None

    def play(self, speed: float) -> None:
        """From the beginning; one that plays stops."""
        app = self._app
        if self.plays:
            app.show()
            return
        pieces = app.view.pieces()
        if not pieces:
            app.say(["there is no stream to play"])
            return
        app.view.tab = "stream"
        app.show()
        self._pieces, self._playing = pieces, Playing.of(pieces, time.monotonic(), speed)
        self._go_on()

    def stop(self) -> None:
        """Play no more."""
        self._playing = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _go_on(self) -> None:
        app, playing = self._app, self._playing
        if playing is None:
            return
        now = time.monotonic()
        wait = playing.wait(now)
        if wait is None:
            self.stop()
            app.page.fill(app.view.page(), follow=True)
            return
        app.page.fill(app.view.played(self._pieces, playing.shown(now)), follow=True)
        self._timer = app.set_timer(max(wait, _LEAST), self._go_on)
