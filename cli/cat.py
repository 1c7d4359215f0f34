"""`tapeproxy cat`: a tape as plain JSON, for jq, for eyes and for `git diff`."""

import json
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.unlocking import Unlocking, unlock_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tapeproxy.tapes.records import Json


@click.command(context_settings=HELP)
@click.option("--pretty", is_flag=True, help="Exchange by exchange, laid out for reading and for diffs.")
@click.argument("tape", required=False)
@unlock_options
def command(tape: str | None, pretty: bool, unlocking: Unlocking) -> None:
    """Print a tape as plain JSON.

    \b
    tapeproxy cat TAPE | jq 'select(.k == "request") | .url'
    tapeproxy cat TAPE --pretty | less

    Each line is a record, as docs/FORMAT.md has it, with its number and without its hash. Bodies are whole: where the
    tape refers to an earlier one, what it refers to is put in. They have the Content-Encoding that they came with.

    With --pretty come a document about the run, and then one for each exchange, lane by lane: method, URL, bodies
    with their coding undone, JSON as JSON; of an answer of a model, what its stream adds up to. Times, numbers, hashes
    and all headers but those that clients act on are left out, and a text of several lines is an object with its
    `lines`, so that two recordings of the same are the same and a change is few lines of a diff. To have git show
    tapes so, put into .gitattributes:

    \b
    *.tape.jsonl.gz diff=tapeproxy

    and run, once in each clone:

    \b
    git config diff.tapeproxy.textconv 'tapeproxy cat --pretty'
    git config diff.tapeproxy.cachetextconv true

    Characters that act on a terminal, or cannot be seen, are escaped as JSON does it.
    """
    path = choose_tape(tape)
    for document in _pretty(path, unlocking) if pretty else _records(path, unlocking):
        click.echo(_text(document, pretty=pretty))


def _text(document: "Json", *, pretty: bool) -> str:
    from tapeproxy.tapes.invisible import spelled_json

    return spelled_json(json.dumps(document, ensure_ascii=False, indent=2 if pretty else None))


def _records(path: "Path", unlocking: Unlocking) -> "Iterator[Json]":
    from tapeproxy.proxy.tapefile import read_entries
    from tapeproxy.tapes.exchanges import in_order
    from tapeproxy.tapes.plain import record_document

    return map(record_document, in_order(read_entries(path, ask=unlocking.ask), str(path)))


def _pretty(path: "Path", unlocking: Unlocking) -> "Iterator[Json]":
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.plain import exchange_documents, run_document

    loaded, _ = load(path, unlocking.ask)
    yield run_document(loaded)
    yield from exchange_documents(loaded)
