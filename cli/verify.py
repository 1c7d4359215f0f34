"""`tapeproxy verify`: is a tape, byte for byte, what was written, and is its run the same in every replay?"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.progress import repeat_told
from tapeproxy.cli.rendering import echo, printable, screen_of
from tapeproxy.cli.repeated import document, exit_code, lines
from tapeproxy.cli.runoptions import NAMES, RunOptions, run_options
from tapeproxy.tapes.errors import TapeFormatError, UsageError

if TYPE_CHECKING:
    from tapeproxy.tapes.decoder import Ending
    from tapeproxy.tapes.verdict import Verdict


@click.command(cls=AgentCommand, context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--times", type=click.IntRange(1), metavar="N", help="Then replay it N times, and compare.")
@click.option("-v", "--show-output", is_flag=True, help="With --times: print what the agent printed, run by run.")
@run_options
@click.argument("tape", required=False)
@click.pass_context
def command(
    ctx: click.Context, tape: str | None, as_json: bool, times: int | None, show_output: bool, run: RunOptions
) -> int:
    """Check that a tape is whole and unchanged.

    Its chain of hashes, its seal and what its exchanges add up to are computed anew. Any edit to any byte is found.
    Someone who knows how can write a whole new tape, with hashes that fit; its last hash is then another, so note
    that one down where it matters.

    \b
    tapeproxy verify bug.tape.jsonl.gz
    tapeproxy verify --times 20                    the last tape, with its own command
    tapeproxy verify bug.tape.jsonl.gz --times 5 -- python agent.py

    --times N also runs the agent against the tape N times (as replay does, which explains the other options) and
    says whether all were identical: no violation, no drift, the same requests, headers and positions in each lane,
    the same answers, the same bytes on stdout and stderr, the same exit code. If not, it explains the first
    difference. The agent's input is empty, and its output is taken instead of printed; processes and temporary
    files that it leaves behind are removed before the next replay.

    \b
    Exit codes: 0 every byte is as it was written, and all replays were identical
                3 a replay made a violation
                4 replays differed, or drifted
                5 edited, cut, interrupted (no seal), or compressed anew (the content is intact then)
                124 a replay was stopped by --timeout
                130 stopped by Ctrl-C before all N replays were over

    A tape that is interrupted or compressed anew is replayed all the same. Where several codes fit, the order is
    5 for a tape that is not replayed, 3, 4, 124, 130, 5.

    --json prints: tape (its path), finding (intact, interrupted, not-canonical, trace-differs, damaged), good, what,
    fix, line (where; 0: the file as a whole), records, exchanges, outcome, head_hash, last_hash and trace. Where the
    finding is damaged, records and exchanges are those before the damage.

    --json --times N adds: times (N), replays (how many were made), identical (how many were clean and as the first),
    stopped (by Ctrl-C), as_sealed (whether all replays had the trace of the tape's seal; null: no seal),
    mean_ns (nanoseconds a replay took), difference (null, or the first one) and runs (number, took_ns; stdout and
    stderr, each with size and blake3; report, as replay --report writes it). A difference has replay (its number),
    what (violation, drift, timeout, request, position, answers, stdout, stderr, exit), text (a sentence), differences
    (where; first and this: excerpts of replay 1 and of this one), also (what else differs) and fault (the violation or
    drift, as in a report).
    """
    argv = agent_argv(ctx)
    if times is None:
        _refuse_without_times(ctx, argv)
    path = choose_tape(tape)
    settings = run.settings(path, argv) if times is not None else None
    verdict = examine(path)
    if times is None or settings is None or verdict.finding in ("damaged", "trace-differs"):
        _say(path, verdict, as_json=as_json)
        return 0 if verdict.good else TapeFormatError.exit_code
    if not as_json:
        _print(path, verdict)
    repeated = asyncio.run(repeat_told(settings, times, show_output=show_output))
    if as_json:
        click.echo(json.dumps(_document(path, verdict) | document(repeated, times), indent=2))
    else:
        for line in lines(repeated, times, str(Path.cwd()), screen_of(sys.stdout)):
            echo(line)
    return exit_code(repeated) or (0 if verdict.good else TapeFormatError.exit_code)


def _refuse_without_times(ctx: click.Context, argv: tuple[str, ...]) -> None:
    """Options that say how to replay mean nothing where nothing is replayed. Raises UsageError."""
    given = [name for name in ("show_output", *NAMES) if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if argv or given:
        what = "a command" if argv else f"--{given[0].replace('_', '-')}"
        raise UsageError(f"{what} is for replays, and none was asked for", fix="add --times 5")


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


def _say(path: Path, verdict: "Verdict", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_document(path, verdict), indent=2))
    else:
        _print(path, verdict)


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
