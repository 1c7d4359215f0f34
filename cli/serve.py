"""`tapeproxy serve`: the page of tapes, on loopback. Parses, opens the port, prints the address."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import FOLDER, choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError, install

if TYPE_CHECKING:
    from tapeproxy.proxy.unlocking import Ask


@click.command(context_settings=HELP)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: one that is free]")
@click.option("--open", "show", is_flag=True, help="Open a browser on it.")
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="For forks: send what goes to HOST to URL.")
@click.option("--upstream-ca", type=click.Path(path_type=Path), help="For forks: more roots to trust upstream (PEM).")
@click.argument("place", required=False, metavar="[TAPE|DIR]")
@unlock_options
def command(
    place: str | None, port: int, show: bool, maps: tuple[str, ...], upstream_ca: Path | None, unlocking: Unlocking
) -> None:
    """Show tapes in a browser: lanes, exchanges, conversations, streams, as they are recorded.

    \b
    tapeproxy serve                    the tapes in .tapes
    tapeproxy serve TAPE               one of them
    tapeproxy serve DIR --port 8765

    It listens on loopback only. The address that it prints holds a token, without which nothing of a tape is given
    out. Ctrl-C ends it. It needs the extra `view`: pip install 'tapeproxy[view]'.
    """
    try:
        from tapeproxy.proxy.viewserver import ViewOptions, serve
    except ModuleNotFoundError as error:
        raise UsageError(f"the viewer needs {error.name}, which is not installed", fix=install("view")) from None

    path = FOLDER if place is None else Path(place) if Path(place).is_dir() else choose_tape(place)
    if not path.exists():
        raise UsageError("there is nothing there", where=str(path), fix="record a tape, or name a folder of tapes")
    extra = [f"--map={one}" for one in maps] + ([f"--upstream-ca={upstream_ca}"] if upstream_ca else [])
    page = "" if path.is_dir() else f"tape/{path.name}"

    def ready(address: str) -> None:
        click.echo(address)
        if show:
            click.launch(address)

    ask = _asked_now(path, unlocking)
    options = ViewOptions(path, token=secrets.token_urlsafe(24), port=port, ask=ask, extra=tuple(extra))
    serve(options, page, ready)


def _asked_now(path: Path, unlocking: Unlocking) -> "Ask":
    """Who opens encrypted tapes. Nobody is asked on the terminal once the page is open: its requests would wait."""
    from tapeproxy.proxy.tapefile import is_locked, read_entries
    from tapeproxy.proxy.unlocking import ask_environment

    if path.is_file() and is_locked(path):
        next(read_entries(path, ask=unlocking.ask), None)
        return unlocking.ask
    return unlocking.ask if unlocking.named else ask_environment
