"""What takes its time, on a terminal: several replays of one tape while they run, and the reading of a big tape."""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.rendering import block, clip, printable, size

if TYPE_CHECKING:
    from tapeproxy.proxy.comparing import Run
    from tapeproxy.proxy.outputs import Output
    from tapeproxy.proxy.repeating import Begun, Repeated
    from tapeproxy.proxy.replayed import ReplaySettings


async def repeat_told(settings: "ReplaySettings", times: int, *, show_output: bool) -> "Repeated":
    """Replay a tape so often, with a line of progress on a terminal. Raises what `repeat` raises."""
    from tapeproxy.proxy.guard import describe
    from tapeproxy.proxy.repeating import repeat

    if settings.guard.reason:
        click.echo(f"tapeproxy: {printable(describe(settings.guard))}", err=True)
    progress = Progress(show_output=show_output)
    try:
        return await repeat(settings, times, progress.tell)
    finally:
        progress.clear()


_PATIENCE, _PAUSE = 1.0, 0.1
"""Seconds before a bar is shown, and between two of its states."""
_BAR = 20


def watch_reading() -> None:
    """From now on, show a bar on standard error for every file that takes longer than a second."""
    from tapeproxy.proxy.watching import WATCHER

    WATCHER.set(ReadingBar(time.monotonic, _to_terminal).tell)


class ReadingBar:
    """A bar for the file that is worked on. `now` in seconds; `write` takes what a terminal is to be sent."""

    def __init__(self, now: Callable[[], float], write: Callable[[str], None]) -> None:
        self._now = now
        self._write = write
        self._due: float | None = None
        self._drawn = False

    def tell(self, path: Path, done: int, of: int, doing: str) -> None:
        """So many bytes are done; of all of them, the bar goes. `doing`: as `reading`."""
        if done >= of:
            if self._drawn:
                self._write("\r\x1b[K")
            self._due, self._drawn = None, False
            return
        now = self._now()
        if self._due is None:
            self._due = now + _PATIENCE
        elif now >= self._due:
            self._due, self._drawn = now + _PAUSE, True
            width = max(shutil.get_terminal_size().columns - 1, 20)
            self._write("\r\x1b[K" + clip(_bar(path, done, of, doing), width))


def _bar(path: Path, done: int, of: int, doing: str) -> str:
    full = _BAR * done // of
    return f"[{'#' * full}{'.' * (_BAR - full)}] {100 * done // of} % of {size(of)}, {doing} {printable(path.name)}"


def _to_terminal(text: str) -> None:
    click.echo(text, nl=False, err=True)


class Progress:
    """Says on a terminal which replay runs; elsewhere only what the agent printed, where that is wanted."""

    def __init__(self, *, show_output: bool) -> None:
        self._show_output = show_output
        self._terminal = sys.stderr.isatty()
        self._drawn = False

    def tell(self, event: "Begun | Run") -> None:
        """A replay begins, or is over."""
        from tapeproxy.proxy.repeating import Begun

        if isinstance(event, Begun):
            self._draw(f"replay {event.number}/{event.times} …")
        elif self._show_output:
            self.clear()
            _show(f"replay {event.number}, stdout", event.stdout)
            _show(f"replay {event.number}, stderr", event.stderr)

    def clear(self) -> None:
        """Leave no line of progress behind."""
        if self._drawn:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._drawn = False

    def _draw(self, text: str) -> None:
        if self._terminal:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
            self._drawn = True


def _show(title: str, output: "Output") -> None:
    if not output.size:
        return
    cut = "" if output.whole else f", the first {len(output.text)} of {output.size} bytes"
    click.echo(f"--- {title}{cut}", err=True)
    click.echo(block(output.text.decode(errors="backslashreplace")).rstrip("\n"), err=True)
