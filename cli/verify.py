"""`tapeproxy verify`: is a tape, byte for byte, what was written?"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo, printable, screen_of
from tapeproxy.tapes.errors import TapeFormatError

if TYPE_CHECKING:
    from tapeproxy.tapes.decoder import Ending
    from tapeproxy.tapes.verdict import Verdict


@click.command(context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.argument("tape", required=False)
def command(tape: str | None, as_json: bool) -> int:
    """Check that a tape is whole and unchanged.

    Its chain of hashes, its seal and what its exchanges add up to are computed anew. Any edit to any byte is found.
    Someone who knows how can write a whole new tape, with hashes that fit; its last hash is then another, so note
    that one down where it matters.

    \b
    Exit codes: 0 every byte is as it was written
                5 edited, cut, interrupted (no seal), or compressed anew (the content is intact then)

    --json prints: tape (its path), finding (intact, interrupted, not-canonical, trace-differs, damaged), good, what,
    fix, line (where; 0: the file as a whole), records, exchanges, outcome, head_hash, last_hash and trace. Where the
    finding is damaged, records and exchanges are those before the damage.
    """
    path = choose_tape(tape)
    verdict = examine(path)
    if as_json:
        click.echo(json.dumps(_document(path, verdict), indent=2))
    else:
        _print(path, verdict)
    return 0 if verdict.good else TapeFormatError.exit_code


def examine(path: Path) -> "Verdict":
    """Read the tape at `path` to its end, or as far as it goes. Raises TapeFormatError when there is no such file."""
    from tapeproxy.proxy.tapefile import read_entries
    from tapeproxy.tapes.exchanges import assemble
    from tapeproxy.tapes.verdict import Witness

    witness = Witness()
    endings: list[Ending] = []
    try:
        assemble(map(witness.see, read_entries(path, endings)), str(path))
    except TapeFormatError as error:
        if not path.is_file() or not os.access(path, os.R_OK):
            raise
        return witness.judge_damage(error)
    return witness.judge(endings[0])


def _document(path: Path, verdict: "Verdict") -> dict[str, object]:
    return {
        "tape": str(path),
        "finding": verdict.finding,
        "good": verdict.good,
        "what": verdict.what,
        "fix": verdict.fix,
        "line": verdict.line,
        "records": verdict.records,
        "exchanges": verdict.exchanges,
        "outcome": verdict.outcome,
        "head_hash": verdict.head_hash,
        "last_hash": verdict.last_hash,
        "trace": verdict.trace,
    }


def _print(path: Path, verdict: "Verdict") -> None:
    screen = screen_of(sys.stdout)
    place = f"{path}, line {verdict.line}" if verdict.line else str(path)
    finding = screen.paint(verdict.finding.replace("-", " "), "green" if verdict.good else "red", bold=True)
    echo(f"{printable(place)}: {finding}: {printable(verdict.what)}")
    if verdict.fix:
        echo(f"  {printable(verdict.fix)}")
    before = " before the damage" if verdict.finding == "damaged" else ""
    facts = (
        ("records", f"{verdict.records}{before}"),
        ("exchanges", f"{verdict.exchanges}{before}"),
        ("outcome", verdict.outcome),
        ("head hash", verdict.head_hash),
        ("last hash", verdict.last_hash),
        ("trace hash", verdict.trace),
    )
    for name, value in facts:
        if value:
            echo(f"  {name:<10}  {printable(value)}")
