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
@click.argument("other", required=False, metavar="[TAPE]")
@unlock_options
def command(
    tape: str | None, other: str | None, output: Path | None, force: bool, no_file: bool, unlocking: Unlocking
) -> None:
    """Write a tape, or two to compare, as one page that opens from disk, offline.

    \b
    tapeproxy view TAPE -o run.html
    tapeproxy view                     the last tape in .tapes
    tapeproxy view A B -o diff.html    both runs in one picture, and where they part

    The page shows lanes, exchanges, conversations and streams, needs nothing installed and asks the network for
    nothing. It holds the whole tape, so whoever has the page can verify the tape in their browser; an encrypted tape
    is in it in the clear, and its bytes are left out. Redacted values stay redacted. The file can be read by you
    alone; change that if it is for others.
    """
    from tapeproxy.cli.outfiles import write_whole
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.magic import is_encrypted
    from tapeproxy.web.singlefile import single_file

    if other is not None:
        _write_diff((choose_tape(tape), choose_tape(other)), output or Path("diff.html"), force, unlocking)
        return
    path = choose_tape(tape)
    loaded, ending = load(path, unlocking.ask)
    raw = None if no_file else path.read_bytes()
    if raw is not None and is_encrypted(raw[:64]):
        raw = None
    target = output or Path(path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".tape") + ".html")
    write_whole(target, single_file(loaded, ending, path.name, raw), force=force)
    click.echo(f"tapeproxy: wrote {printable(str(target))}", err=True)


def _write_diff(paths: tuple[Path, Path], target: Path, force: bool, unlocking: Unlocking) -> None:
    from tapeproxy.cli.outfiles import write_whole
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.errors import Place, TapeFormatError
    from tapeproxy.tapes.tapediff import diff_tapes
    from tapeproxy.web.rundiff import RunDiff
    from tapeproxy.web.singlefile import diff_file

    ours, theirs = (load(path, unlocking.ask)[0] for path in paths)
    try:
        diff = diff_tapes(ours, theirs)
    except ValueError as error:
        raise TapeFormatError(f"the tapes cannot be compared: {error}", place=Place(str(paths[0]))) from None
    names = (paths[0].name, paths[1].name) if paths[0].name != paths[1].name else (str(paths[0]), str(paths[1]))
    write_whole(target, diff_file(RunDiff(diff, names), " and ".join(names)), force=force)
    click.echo(f"tapeproxy: wrote {printable(str(target))}", err=True)
