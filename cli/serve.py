"""`tapeproxy serve`: the page of tapes, on loopback. Parses, opens the port, prints the address."""

import contextlib
import secrets
from pathlib import Path

import click

from tapeproxy.cli.browsing import browse, leading_to
from tapeproxy.cli.choose import FOLDER, choose_tape
from tapeproxy.cli.forkoptions import fork_options
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError, install


@click.command(context_settings=HELP)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: one that is free]")
@click.option("--open", "show", is_flag=True, help="Open a browser on it.")
@fork_options
@click.argument("place", required=False, metavar="[TAPE|DIR]")
@unlock_options
def command(place: str | None, port: int, show: bool, extra: tuple[str, ...], unlocking: Unlocking) -> None:
    """Show tapes in a browser: lanes, exchanges, conversations, streams, as they are recorded.

    \b
    tapeproxy serve                    the tapes in .tapes
    tapeproxy serve TAPE               one of them
    tapeproxy serve DIR --port 8765

    It listens on loopback only. The address that it prints holds a token, without which nothing of a tape is given
    out. Ctrl-C ends it. It needs the extra `view`.
    """
    try:
        from tapeproxy.proxy.viewserver import ViewOptions, serve
    except ModuleNotFoundError as error:
        raise UsageError(f"the viewer needs {error.name}, which is not installed", fix=install("view")) from None

    path = FOLDER if place is None else Path(place) if Path(place).is_dir() else choose_tape(place)
    if not path.exists():
        raise UsageError("there is nothing there", where=str(path), fix="record a tape, or name a folder of tapes")
    page = "" if path.is_dir() else f"tape/{path.name}"

    ask = unlocking.asked_now(path)
    options = ViewOptions(path, token=secrets.token_urlsafe(24), port=port, ask=ask, extra=extra)
    with contextlib.ExitStack() as until_it_ends:

        def ready(address: str) -> None:
            click.echo(address)
            if show:
                browse(until_it_ends.enter_context(leading_to(address)))

        serve(options, page, ready)
