"""`tapeproxy view`: a tape as one HTML file."""

from pathlib import Path

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import printable
from tapeproxy.cli.unlocking import Unlocking, unlock_options


@click.command(context_settings=HELP)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write it; without, beside the tape's name in this folder.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--no-file", is_flag=True, help="Leave the tape's own bytes out: smaller, and nothing to verify.")
@click.argument("tape", required=False)
@unlock_options
def command(tape: str | None, output: Path | None, force: bool, no_file: bool, unlocking: Unlocking) -> None:
    """Write a tape as one page that opens from disk, offline.

    \b
    tapeproxy view TAPE -o run.html
    tapeproxy view                     the last tape in .tapes

    The page shows lanes, exchanges, conversations and streams, needs nothing installed and asks the network for
    nothing. It holds the whole tape, so whoever has the page can verify the tape in their browser; an encrypted tape
    is in it in the clear, and its bytes are left out. Redacted values stay redacted. The file can be read by you
    alone; change that if it is for others.
    """
    from tapeproxy.cli.outfiles import write_whole
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.magic import is_encrypted
    from tapeproxy.web.singlefile import single_file

    path = choose_tape(tape)
    loaded, ending = load(path, unlocking.ask)
    raw = None if no_file else path.read_bytes()
    if raw is not None and is_encrypted(raw[:64]):
        raw = None
    target = output or Path(path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".tape") + ".html")
    write_whole(target, single_file(loaded, ending, path.name, raw), force=force)
    click.echo(f"tapeproxy: wrote {printable(str(target))}", err=True)
