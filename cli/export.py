"""`tapeproxy export`: a tape in a format of others. Knows which formats there are, none of them."""

import functools
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import printable
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tapeproxy.tapes.exchanges import Tape
    from tapeproxy.tapes.exports import Exporter


class _Format(NamedTuple):
    """The module whose `export` makes it, and what that makes of a tape."""

    module: str
    what: str


FORMATS: Final[dict[str, _Format]] = {
    "markdown": _Format(
        "tapes.exports.markdown", "a transcript: what was said to models, and fetched in between, lane by lane"
    ),
    "har": _Format(
        "tapes.exports.har", "HAR 1.2, for browsers, proxies and load testers; `import` makes the same exchanges of it"
    ),
    "vcr": _Format("tapes.exports.vcr", "a cassette that VCR.py plays back; `import` makes the same exchanges of it"),
    "mitmproxy": _Format("proxy.exporting", "flows for mitmproxy, mitmweb and mitmdump; needs tapeproxy[record]"),
    "otlp": _Format("tapes.exports.otlp", "spans of OpenTelemetry's GenAI conventions, as JSON or to a collector"),
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
@click.option("--endpoint", metavar="URL", help="otlp: send it to this collector, as http://localhost:4318.")
@click.option(
    "--content/--no-content", default=None, help="otlp: with what was said to models and tools.  [default: no]"
)
@click.argument("tape", required=False)
@unlock_options
def command(
    tape: str | None,
    form: str,
    output: Path | None,
    force: bool,
    endpoint: str | None,
    content: bool | None,
    unlocking: Unlocking,
) -> None:
    """Write what is on a tape in a format of others.

    \b
    tapeproxy export TAPE --to markdown -o transcript.md
    tapeproxy export TAPE --to otlp --endpoint http://localhost:4318

    \b
    markdown   a transcript: what was said to models, and fetched in between, lane by lane
    har        HAR 1.2, for browsers, proxies and load testers; `import` makes the same exchanges of it
    vcr        a cassette that VCR.py plays back; `import` makes the same exchanges of it
    mitmproxy  flows for mitmproxy, mitmweb and mitmdump; needs tapeproxy[record]
    otlp       spans of OpenTelemetry's GenAI conventions, as JSON or to a collector

    What a format cannot hold of the tape is told on standard error. Redacted values stay redacted. The file can be
    read by you alone; change that if it is for others. A collector gets the headers that
    OTEL_EXPORTER_OTLP_HEADERS names.

    \b
    Exit codes: 0 written, or sent
                2 the file or the collector could not be had, or the collector refused spans
                5 the tape is damaged
    """
    from tapeproxy.proxy.tapefile import load

    _check(form, output, endpoint, content)
    path = choose_tape(tape)
    loaded, _ = load(path, unlocking.ask)
    if endpoint is not None:
        _send(loaded, path.name, endpoint, content=bool(content))
        return
    made = importlib.import_module(f"tapeproxy.{FORMATS[form].module}").export
    export: Exporter = made if content is None else functools.partial(made, content=content)
    _write(export(loaded, path.name, _tell), output, path.name, force=force)


def _check(form: str, output: Path | None, endpoint: str | None, content: bool | None) -> None:
    if form != "otlp" and (endpoint is not None or content is not None):
        raise UsageError(f"--{'endpoint' if endpoint is not None else 'content'} is for --to otlp")
    if endpoint is not None and output is not None:
        raise UsageError("--endpoint and --output exclude each other")


def _write(pieces: "Iterator[bytes]", output: Path | None, source: str, *, force: bool) -> None:
    from tapeproxy.cli.outfiles import write_whole

    try:
        if output is None or str(output) == "-":
            for piece in pieces:
                click.echo(piece, nl=False)
            return
        write_whole(output, pieces, force=force)
    except ValueError as error:
        raise UsageError(f"it cannot be exported: {error}", where=source) from None
    click.echo(f"tapeproxy: wrote {printable(str(output))}", err=True)


def _send(tape: "Tape", source: str, url: str, *, content: bool) -> None:
    from tapeproxy.proxy.collector import endpoint_of, headers_of, send
    from tapeproxy.tapes.exports.otlp import requests

    endpoint = endpoint_of(url)
    sent = send(endpoint, requests(tape, source, _tell, content=content), headers_of(os.environ))
    for said in sent.said:
        _tell(f"the collector says: {said}")
    if sent.rejected:
        raise UsageError(f"the collector refused {sent.rejected} spans and took {sent.spans}", where=endpoint)
    _tell(f"sent {sent.spans} spans to {endpoint}")


def _tell(sentence: str) -> None:
    click.echo(f"tapeproxy: {printable(sentence)}", err=True)
