"""`tapeproxy export`: a tape in a format of others. Knows which formats there are, none of them."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import printable
from tapeproxy.cli.unlocking import Unlocking, unlock_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tapeproxy.tapes.exports import Exporter


class _Format(NamedTuple):
    """The module whose `export` makes it, and what that makes of a tape."""

    module: str
    what: str


FORMATS: Final[dict[str, _Format]] = {
    "markdown": _Format(
        "tapes.exports.markdown", "a transcript: what was said to models, and fetched in between, lane by lane"
    ),
    "vcr": _Format("tapes.exports.vcr", "a cassette that VCR.py plays back; `import` makes the same exchanges of it"),
    "har": _Format(
        "tapes.exports.har", "HAR 1.2, for browsers, proxies and load testers; `import` makes the same exchanges of it"
    ),
    "mitmproxy": _Format("proxy.exporting", "flows for mitmproxy, mitmweb and mitmdump; needs tapeproxy[record]"),
}


@click.command(context_settings=HELP)
@click.option("--to", "form", type=click.Choice(list(FORMATS)), required=True, help="The format.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Where to write it; without, or with -, standard output.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.argument("tape", required=False)
@unlock_options
def command(tape: str | None, form: str, output: Path | None, force: bool, unlocking: Unlocking) -> None:
    """Write what is on a tape in a format of others.

    \b
    tapeproxy export TAPE --to markdown -o transcript.md

    \b
    markdown   a transcript: what was said to models, and fetched in between, lane by lane
    vcr        a cassette that VCR.py plays back; `import` makes the same exchanges of it
    har        HAR 1.2, for browsers, proxies and load testers; `import` makes the same exchanges of it
    mitmproxy  flows for mitmproxy, mitmweb and mitmdump; needs tapeproxy[record]

    What a format cannot hold of the tape is told on standard error. Redacted values stay redacted. The file can be
    read by you alone; change that if it is for others.
    """
    from tapeproxy.cli.outfiles import write_whole
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.errors import UsageError

    path = choose_tape(tape)
    loaded, _ = load(path, unlocking.ask)
    export: Exporter = importlib.import_module(f"tapeproxy.{FORMATS[form].module}").export
    pieces = export(loaded, path.name, _tell)
    try:
        if output is None or str(output) == "-":
            _print(pieces)
            return
        write_whole(output, pieces, force=force)
    except ValueError as error:
        raise UsageError(f"it cannot be exported: {error}", where=path.name) from None
    click.echo(f"tapeproxy: wrote {printable(str(output))}", err=True)


def _print(pieces: "Iterator[bytes]") -> None:
    for piece in pieces:
        click.echo(piece, nl=False)


def _tell(sentence: str) -> None:
    click.echo(f"tapeproxy: {printable(sentence)}", err=True)
