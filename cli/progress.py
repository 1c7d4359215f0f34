"""Several replays of one tape while they run: a line on a terminal, and the agents' output where it is wanted."""

import sys
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.rendering import block, printable

if TYPE_CHECKING:
    from tapeproxy.proxy.comparing import Run
    from tapeproxy.proxy.outputs import Output
    from tapeproxy.proxy.repeating import Begun, Repeated
    from tapeproxy.proxy.replaying import ReplaySettings


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
