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
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.cli.vouching import demanded, vouched, voucher_fields, vouchers
from tapeproxy.tapes.errors import TapeFormatError, UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.unlocking import Ask
    from tapeproxy.tapes.decoder import Ending
    from tapeproxy.tapes.verdict import Verdict


_FILE = click.Path(path_type=Path, dir_okay=False)
_REPLAYED = ("intact", "interrupted", "not-canonical")
"""What may be wrong with a tape that is replayed all the same."""


@click.command(cls=AgentCommand, context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--key", "keys", multiple=True, type=_FILE, metavar="FILE", help="A public key: this one must have signed."
)
@click.option("--head", "pin", metavar="HASH", help="The hash that the tape must have; 16 digits of it will do.")
@click.option("--signature", type=_FILE, metavar="FILE", help="The tape's signature.  [default: TAPE.sig]")
@click.option("--times", type=click.IntRange(1), metavar="N", help="Then replay it N times, and compare.")
@click.option("-v", "--show-output", is_flag=True, help="With --times: print what the agent printed, run by run.")
@run_options
@unlock_options
@click.argument("tape", required=False)
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    as_json: bool,
    keys: tuple[Path, ...],
    pin: str | None,
    signature: Path | None,
    times: int | None,
    show_output: bool,
    run: RunOptions,
    unlocking: Unlocking,
) -> int:
    """Check that a tape is whole and unchanged.

    Its chain of hashes, its seal and what its exchanges add up to are computed anew. Any edit to any byte is found.
    Someone who knows how can write a whole new tape, with hashes that fit. Against that there are two means: --head
    with the last hash, which you noted down elsewhere, and --key with the public key of someone who signed the tape
    (`tapeproxy sign`; of several keys any will do). A signature beside the tape is always checked; without --key it
    only says that somebody with that key signed.

    \b
    tapeproxy verify bug.tape.jsonl.gz
    tapeproxy verify bug.tape.jsonl.gz --key me.key.pub
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
                5 edited, cut, interrupted (no seal), or compressed anew (the content is intact then); not
                  signed by the --key, another hash than --head, or a signature that is not of this tape
                124 a replay was stopped by --timeout
                130 stopped by Ctrl-C before all N replays were over

    A tape that is interrupted or compressed anew is replayed all the same, unless --key or --head is given. Where
    several codes fit, the order is 5 for a tape that is not replayed, 3, 4, 124, 130, 5.

    --json prints: tape (its path), finding (intact, interrupted, not-canonical, trace-differs, damaged, not-pinned,
    unsigned, signed-by-another, false-signature), good, what, fix, line (where; 0: the file as a whole), records,
    exchanges, outcome, head_hash, last_hash, trace, gaps (what the recorder could not tape, a sentence each), pinned
    (last, head or null: which hash --head is), signed_by (the fingerprint, or null), signed_at and trusted (by a
    --key). Where the finding is damaged, records and exchanges are those before the damage.

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
    settings = run.settings(path, argv, ask=unlocking.ask) if times is not None else None
    demand = demanded(keys, pin)
    verdict = vouched(path, examine(path, unlocking.ask), demand, signature)
    as_wanted = verdict.good or not (keys or pin)
    if times is None or settings is None or verdict.finding not in _REPLAYED or not as_wanted:
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


def examine(path: Path, ask: "Ask") -> "Verdict":
    """Read the tape at `path` to its end, or as far as it goes.

    Raises TapeFormatError when there is no such file, and LockedTapeError when it is encrypted and `ask` does not help.
    """
    from tapeproxy.proxy.tapefile import read_entries
    from tapeproxy.tapes.exchanges import in_order
    from tapeproxy.tapes.verdict import Witness

    witness = Witness()
    endings: list[Ending] = []
    try:
        for _ in in_order(map(witness.see, read_entries(path, endings, ask)), str(path)):
            pass
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
        "gaps": list(verdict.gaps),
    } | voucher_fields(verdict)


def _print(path: Path, verdict: "Verdict") -> None:
    screen = screen_of(sys.stdout)
    place = f"{path}, line {verdict.line}" if verdict.line else str(path)
    finding = screen.paint(verdict.finding.replace("-", " "), "green" if verdict.good else "red", bold=True)
    echo(f"{printable(place)}: {finding}: {printable(verdict.what)}")
    if verdict.fix:
        echo(f"  {printable(verdict.fix)}")
    for gap in verdict.gaps:
        echo(f"  {screen.paint('warning', 'yellow', bold=True)}: {printable(gap)}")
    before = " before the damage" if verdict.finding == "damaged" else ""
    facts = (
        ("records", f"{verdict.records}{before}"),
        ("exchanges", f"{verdict.exchanges}{before}"),
        ("outcome", verdict.outcome),
        ("head hash", verdict.head_hash),
        ("last hash", verdict.last_hash),
        ("trace hash", verdict.trace),
        *vouchers(verdict),
    )
    for name, value in facts:
        if value:
            echo(f"  {name:<10}  {printable(value)}")
