"""`tapeproxy import`: make tapes of other tools' recordings."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import printable
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.imports.nodes import ForeignFormatError

if TYPE_CHECKING:
    from tapeproxy.proxy.importing import Imported

_FORMATS = ("vcr", "har", "mitm", "cassetter", "azure", "wiremock")
_SUFFIXES = (".yaml", ".yml", ".json", ".har", ".mitm", ".flow", ".flows")


@click.command(context_settings=HELP)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The tape to write, or a folder: a name without a suffix."
)
@click.option("--from", "format", type=click.Choice(_FORMATS), help="The format.  [default: whichever it is]")
@click.option("--base-url", default="", metavar="URL", help="The host of WireMock's paths.")
@click.option("--keep-going", is_flag=True, help="Leave out what can't be imported.")
@click.option("--force", is_flag=True, help="Replace tapes that exist.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(
    files: tuple[Path, ...],
    output: Path | None,
    format: str | None,
    base_url: str,
    keep_going: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Make tapes of the recordings of other tools, so that their tests replay here.

    \b
    tapeproxy import cassettes/test_chat.yaml               makes test_chat.tape.jsonl.gz
    tapeproxy import cassettes/*.yaml -o tapes
    tapeproxy import stubs/ --base-url https://api.example.com -o bug.tape.jsonl.gz
    tapeproxy replay test_chat.tape.jsonl.gz -- python agent.py

    Read are cassettes of VCR.py, go-vcr, Ruby's VCR and cassetter, HAR (browsers', Polly's), mitmproxy's flows,
    recordings of Azure's test proxy, and WireMock's mappings, a file or their folder. A tape says what its source does
    not tell (times, boundaries of chunks, lanes). Bodies and headers that contradict each other, as a decoded body
    under `content-encoding: gzip`, are put right, with a note. Secrets are redacted as when recording.

    \b
    Exit codes: 0 imported; with --keep-going also if something was left out, an entry or a file, which is listed
                2 a tape exists, or a file can't be read
                5 a file, or an entry of it, can't be imported: the message names the place; with --keep-going
                  if there is nothing in any of the files that could be imported

    --json prints a list with an object for each file: source, tape (null: the file was left out), format, exchanges,
    absent, mended and refused, a list of place and reason.
    """
    from tapeproxy.proxy.importing import ImportSettings, import_file

    environment = dict(os.environ)
    done: list[Imported | ForeignFormatError] = []
    for file, tape in zip(files, _outputs(files, output), strict=True):
        settings = ImportSettings(
            source=file,
            output=tape,
            environment=environment,
            format=format or "",
            base=base_url,
            force=force,
            keep_going=keep_going,
        )
        try:
            done.append(import_file(settings))
        except ForeignFormatError as error:
            if not keep_going:
                raise
            done.append(error)
        if not as_json:
            _tell(done[-1])
    if as_json:
        documents = [_document(one, file) for one, file in zip(done, files, strict=True)]
        click.echo(json.dumps(documents, indent=2))
    return ForeignFormatError.exit_code if all(isinstance(one, ForeignFormatError) for one in done) else 0


def _outputs(files: tuple[Path, ...], output: Path | None) -> list[Path]:
    """A tape for each file. A name without a suffix is a folder for one, too: `*.yaml` may stand for one or more."""
    if output is not None and len(files) == 1 and output.suffix and not output.is_dir():
        return [output]
    if output is not None and (output.is_file() or output.name.endswith(".gz")):
        raise UsageError("several files make several tapes", where=str(output), fix="name a folder with -o")
    folder = output or Path()
    names = [folder / f"{_stem(file)}.tape.jsonl.gz" for file in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two files would make the tape {twice.name}", fix="import them one by one, each with -o")
    return names


def _stem(file: Path) -> str:
    name = file.resolve().name
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def _tell(done: "Imported | ForeignFormatError") -> None:
    if isinstance(done, ForeignFormatError):
        click.echo(f"tapeproxy: left out: {printable(str(done))}", err=True)
        return
    for error in done.refused:
        click.echo(f"tapeproxy: left out: {printable(str(error))}", err=True)
    count = f"{done.exchanges} exchange{'s' if done.exchanges != 1 else ''}"
    absent = f"; it does not tell {', '.join(done.absent)}" if done.absent else ""
    mended = f"; {done.mended} put right" if done.mended else ""
    click.echo(f"tapeproxy: {printable(str(done.path))}: {count} of {done.format}{absent}{mended}", err=True)


def _document(done: "Imported | ForeignFormatError", source: Path) -> dict[str, object]:
    refused = (done,) if isinstance(done, ForeignFormatError) else done.refused
    out: dict[str, object] = {"source": str(source), "tape": None, "format": None, "exchanges": 0}
    out |= {"absent": {}, "mended": 0, "refused": [{"place": one.place, "reason": one.what} for one in refused]}
    if not isinstance(done, ForeignFormatError):
        out |= {"tape": str(done.path), "format": done.format, "exchanges": done.exchanges}
        out |= {"absent": done.absent, "mended": done.mended}
    return out
