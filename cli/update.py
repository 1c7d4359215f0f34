"""`tapeproxy update`: parse, run, show what changed, and ask whether it is to be written."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.liveoptions import LiveOptions, live_options
from tapeproxy.cli.pending import Review, settle, show, shown_of, write
from tapeproxy.cli.rendering import block, count, printable
from tapeproxy.cli.ruleoptions import given_rules, rule_options
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import TapeExistsError, UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.updating import Updated
    from tapeproxy.tapes.forkplan import Rerun
    from tapeproxy.tapes.violations import Drift, Violation

_LISTED = 20


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tapes", nargs=-1, metavar="[TAPE]...")
@click.option(
    "--rerun",
    type=click.Choice(["changed", "future"]),
    default="changed",
    show_default=True,
    help="Behind the first change: ask anew what is not asked as on the tape, or all that may know of the change.",
)
@click.option("-y", "--yes", is_flag=True, help="Write the new tape without a question.")
@click.option("--dry-run", is_flag=True, help="Ask nothing of the world: say what is not on the tape.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the new tape there; TAPE stays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it to a file.")
@click.option("--review", "pending", flag_value="review", help="Run nothing: show new tapes that wait, ask for each.")
@click.option("--accept", "pending", flag_value="accept", help="Run nothing: show them, and write them all.")
@click.option("--reject", "pending", flag_value="reject", help="Run nothing: remove them.")
@live_options
@click.option("-q", "--quiet", is_flag=True, help="Print violations, warnings, and what is asked about.")
@rule_options
@unlock_options
@click.pass_context
def command(
    ctx: click.Context,
    tapes: tuple[str, ...],
    rerun: "Rerun",
    yes: bool,
    dry_run: bool,
    output: Path | None,
    as_json: bool,
    report: Path | None,
    pending: Review | None,
    live: LiveOptions,
    quiet: bool,
    unlocking: Unlocking,
) -> int:
    """Run a changed agent from its tape, ask anew only what changed, and write that on yes.

    \b
    tapeproxy update                                    the last tape and its own command
    tapeproxy update bug.tape.jsonl.gz -- python agent.py
    tapeproxy update bug.tape.jsonl.gz --dry-run        what is not on the tape? Nothing is asked, no key is needed
    tapeproxy update --review tests/tapes               look at what pytest --tape-mode=update has left there

    What is asked as on the tape is answered from it. What isn't is asked of the world, with the keys of your
    environment, and so is what follows from it, as far as it is asked otherwise than on the tape. At the end it shows
    what `diff` shows, and asks. The old tape is kept as TAPE.bak. Without a terminal to ask on, and without --yes, TAPE
    stays, and the new tape waits beside it as TAPE.new: --review shows it, --accept writes it. Where nothing changed,
    nothing is written and no key is needed. See docs/UPDATE.md.

    \b
    Exit codes: 0 nothing changed, or the new tape is written
                1 something changed, and it is not
                3 a violation: the run did what no tape can have; nothing is written
                5 a tape is damaged or could not be written
                otherwise the agent's own, where it ended another way than on the tape

    --json prints, and --report writes: tape, new (the path of the new tape, or null), written, signature (whether there
    is one that no longer holds), exit_code, agent_exit_code, stopped_by, changed, reused, live, live_of, dropped
    (numbers on the old tape), why (it is not written), violations, drifts, notes, and diff (as of `diff --json`, or
    null). With --review, --accept and --reject: tapes, a list of tape, new, written, signature and diff.
    """
    if pending is not None:
        return settle(pending, tapes, unlocking, yes=yes, as_json=as_json)
    if len(tapes) > 1:
        raise UsageError("one tape is updated at a time", fix="the agent's command goes after --")
    if output is not None and output.exists():
        raise TapeExistsError("the file exists already", where=str(output), fix="name another")
    from tapeproxy.cli.documents import dump
    from tapeproxy.cli.recorded import astray, warner, warnings
    from tapeproxy.cli.replay import Teller, write_report
    from tapeproxy.proxy.guard import describe
    from tapeproxy.proxy.updating import UpdateSettings, update

    path = choose_tape(tapes[0] if tapes else None)
    if not tapes and not quiet:
        click.echo(f"tapeproxy: updating the last tape, {printable(str(path))}", err=True)
    if not dry_run:
        live.world.warn(os.environ)
    settings = UpdateSettings(
        tape=path,
        environment=dict(os.environ),
        cwd=str(Path.cwd()),
        argv=agent_argv(ctx),
        out=output,
        rerun=rerun,
        offline=dry_run,
        hosts=live.hosts,
        upstream_ca=live.upstream_ca,
        way=live.way,
        guard=live.guard(),
        timeout=live.timeout,
        rules=given_rules(ctx),
        ask=unlocking.ask,
    )
    if not quiet:
        click.echo(f"tapeproxy: {printable(describe(settings.guard))}", err=True)
    teller = Teller()

    def notice(found: "Violation | Drift") -> None:
        if not _is_drift(found):
            teller.notice(found)

    updated = asyncio.run(update(settings, notice, warner(strict=False)))
    recorded = updated.forked.recorded
    for line in (*warnings(recorded), *astray(recorded), *(() if quiet else closing_lines(updated))):
        click.echo(f"tapeproxy: {line}", err=True)
    written = _finish(updated, path, yes=yes or output is not None, quiet=quiet, as_json=as_json, dry=dry_run)
    code = updated.exit_code or (1 if updated.pending is not None and not written else 0)
    if as_json or report is not None:
        document = _document(updated, path, output, written=written, code=code)
        if as_json:
            click.echo(dump(document))
        if report is not None:
            write_report(report, document)
    return code


def _is_drift(found: "Violation | Drift") -> bool:
    from tapeproxy.tapes.violations import Drift

    return isinstance(found, Drift)


def closing_lines(updated: "Updated") -> Iterator[str]:
    """What was reused, asked anew and dropped, and what else is worth knowing."""
    from tapeproxy.cli.fork import number_runs

    forked = updated.forked
    for note in forked.notes:
        yield f"note: {block(note)}"
    for drift in forked.drifts[:_LISTED]:
        yield f"note: {block(f'{drift.what}: {drift.request}')}"
    dropped = f" ({number_runs(updated.dropped)})" if updated.dropped else ""
    if updated.missing:
        yield f"{forked.reused} on the tape, {count(updated.missing, 'request')} not; what follows is not known"
    else:
        yield f"{forked.reused} reused, {forked.live} live, {len(updated.dropped)} dropped{dropped}"


def _finish(updated: "Updated", path: Path, *, yes: bool, quiet: bool, as_json: bool, dry: bool) -> bool:
    """Say what came of it, and write the new tape if it is wanted; whether it was."""
    if updated.same:
        if not quiet:
            click.echo(f"tapeproxy: nothing changed: {printable(str(path))} stays as it is", err=True)
        return False
    if updated.pending is None:
        head = "" if dry else "not written: "
        click.echo(f"tapeproxy: {head}{block(updated.why)}", err=True)
        return False
    assert updated.diff is not None
    if not as_json and not (quiet and yes):
        show(updated.pending, updated.diff)
    outcome = updated.forked.outcome
    if updated.failed and outcome is not None:
        click.echo(f"tapeproxy: warning: the agent exited {outcome.exit_code}, which it did not on the tape", err=True)
    return write(updated.pending, yes=yes, keep=True)


def _document(updated: "Updated", path: Path, output: Path | None, *, written: bool, code: int) -> dict[str, object]:
    """All of it, for programs."""
    from tapeproxy.cli.diffdocuments import diff_document

    pending = updated.pending
    new = None if pending is None else str(output or path) if written else str(pending.new)
    diff = diff_document(shown_of(pending), updated.diff) if pending is not None and updated.diff is not None else None
    signed = pending is not None and pending.signed and written
    told = {"tape": str(path), "new": new, "written": written, "signature": signed, "exit_code": code}
    return told | updated.to_json() | {"diff": diff}
