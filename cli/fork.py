"""`tapeproxy fork`: parse, run, and say what was reused, changed and asked anew."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.documents import dump
from tapeproxy.cli.editoptions import edit_options
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.liveoptions import LiveOptions, live_options
from tapeproxy.cli.newtape import new_tape
from tapeproxy.cli.recorded import astray, warner, warnings
from tapeproxy.cli.rendering import block, count, printable
from tapeproxy.cli.replay import Teller
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.cli.editor import EditedAnswer
    from tapeproxy.proxy.edited import Prepared
    from tapeproxy.proxy.forked import Forked, ForkSettings, Parent
    from tapeproxy.tapes.edits import Edit
    from tapeproxy.tapes.exchanges import Tape
    from tapeproxy.tapes.forkplan import ForkPlan, Rerun


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option("--at", metavar="EVENT", help="Where to leave the tape: N as in show, LANE#N, or last; 0: its beginning.")
@edit_options
@click.option("--edit", "by_hand", is_flag=True, help="Change the answer in $VISUAL or $EDITOR.")
@click.option(
    "--rerun",
    type=click.Choice(["future", "changed"]),
    default="future",
    show_default=True,
    help="What is asked anew: all that comes after the change, or of that only what is not asked as on the tape.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The child tape to write.  [default: in .tapes]")
@click.option("--force", is_flag=True, help="Replace the child tape if it exists.")
@click.option("--dry-run", is_flag=True, help="Say what would be reused and asked anew, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: of the dry run, or of how it went.")
@live_options
@click.option("--keyless", multiple=True, metavar="NAME", help="A secret variable that no live call needs.")
@click.option(
    "--on-drift", type=click.Choice(["fail", "report"]), default="fail", show_default=True, help="As in a replay."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but violations and warnings.")
@unlock_options
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    at: str | None,
    edits: "list[Edit]",
    by_hand: bool,
    rerun: "Rerun",
    output: Path | None,
    force: bool,
    dry_run: bool,
    as_json: bool,
    live: LiveOptions,
    keyless: tuple[str, ...],
    on_drift: Literal["fail", "report"],
    quiet: bool,
    unlocking: Unlocking,
) -> int:
    """Run an agent again from a tape with something changed: what comes after it is asked anew, live.

    \b
    tapeproxy fork --at 7 --edit                               the seventh answer of the last tape, in your editor
    tapeproxy fork bug.tape.jsonl.gz --at 7 --text 'No.' -o child.tape.jsonl.gz
    tapeproxy fork bug.tape.jsonl.gz --set '7:$.results[0].price=12' --set '9:$.ok=true' --dry-run
    tapeproxy fork bug.tape.jsonl.gz --at 0 --model gpt-5-mini -- python agent.py

    What came before the change, and what is concurrent with it, is answered from the tape, without a call. The child is
    a whole tape: it replays, and can be forked again. The agent itself reaches the proxy and nothing else; the proxy
    reaches the world. Without an edit of its answer the event at --at is asked anew itself; without --at the tape is
    left at the first event that an edit names, or at its beginning.

    A path begins with $: the answer's JSON body, or what its stream adds up to in the form that the provider's answer
    has when it is not streamed ($.choices[0].message.content). $events[N] is an event of the stream, and $text,
    $status, $headers.NAME and $body are what they say. A value is JSON if it parses, else a text. Each edit may name
    its event: 12:$.a=1, m/t0#3:$.a=1, last:$.a=1; in front of a TEXT or FILE with two colons, 12::New. Whole bodies,
    statuses and headers are changed before anything else. See docs/FORK.md.

    Exit codes are those of record, and of replay for what comes from the tape: 3 after a violation, 4 after a drift.
    --json prints, for a dry run: tape, rerun, branch (exchanges), edits, lanes (lane, name, and the numbers of its
    exchanges that are reused, mutated and live) and live_calls; of a fork that was run: edits, and what docs/FORK.md
    lists.
    """
    from tapeproxy.proxy.edited import prepare
    from tapeproxy.proxy.forked import ForkSettings
    from tapeproxy.proxy.hybrid import check_ready, open_parent
    from tapeproxy.tapes.forkplan import ForkPlan

    environment = dict(os.environ)
    parent = open_parent(choose_tape(tape), unlocking.ask)
    if tape is None and not quiet:
        click.echo(f"tapeproxy: forking the last tape, {printable(str(parent.path))}", err=True)
    argv = agent_argv(ctx)
    settings = ForkSettings(
        parent=parent,
        plan=ForkPlan(),  # until the edits are known
        out=output or new_tape(argv or parent.tape.head.argv),
        environment=environment,
        cwd=str(Path.cwd()),
        argv=argv,
        force=force,
        hosts=live.hosts,
        upstream_ca=live.upstream_ca,
        way=live.way,
        guard=live.guard(),
        keyless=frozenset(keyless),
        on_drift=on_drift,
        timeout=live.timeout,
    )
    with ExitStack() as after:
        if by_hand:
            if not dry_run:
                check_ready(settings)
            written = _edited_by_hand(parent.tape, at, environment)
            edits = [*edits, *written.edits]
            if len(edits) == 0:
                click.echo("tapeproxy: nothing was changed, and nothing is run", err=True)
                return 0
            after.enter_context(written.kept())
        prepared = prepare(parent, edits, environment, at=at, rerun=rerun)
        if dry_run:
            _tell_plan(parent, prepared, as_json=as_json)
            return 0
        live.world.warn(environment)
        settings = replace(settings, plan=prepared.plan, edit=prepared.told)
        return _run(settings, prepared, as_json=as_json, quiet=quiet)


def _tell_plan(parent: "Parent", prepared: "Prepared", *, as_json: bool) -> None:
    if as_json:
        click.echo(dump(dry_document(parent, prepared)))
        return
    for line in dry_lines(parent.tape, prepared):
        click.echo(line)


def _run(settings: "ForkSettings", prepared: "Prepared", *, as_json: bool, quiet: bool) -> int:
    from tapeproxy.proxy.guard import describe
    from tapeproxy.proxy.hybrid import run_fork

    teller = Teller()
    if not quiet:
        for line in prepared.lines:
            click.echo(f"tapeproxy: edit {printable(line)}", err=True)
    for line in prepared.added:
        click.echo(f"tapeproxy: edit {printable(line)}", err=True)
    if not quiet:
        click.echo(f"tapeproxy: {printable(describe(settings.guard))}", err=True)
    forked = asyncio.run(run_fork(settings, teller.notice, warner(strict=False)))
    for line in (
        *warnings(forked.recorded),
        *astray(forked.recorded),
        *(() if quiet else closing_lines(forked, settings)),
    ):
        click.echo(f"tapeproxy: {line}", err=True)
    if as_json:
        click.echo(dump(prepared.told | forked.to_json()))
    return forked.exit_code


def _edited_by_hand(tape: "Tape", at: str | None, environment: Mapping[str, str]) -> "EditedAnswer":
    """What the user makes of an answer in an editor. Raises UsageError."""
    from tapeproxy.cli.editor import edit_answer
    from tapeproxy.tapes.eventnames import find_event

    if at is None:
        raise UsageError("it is not said which answer is to be edited", fix="name its exchange: --at N, or --at last")
    return edit_answer(tape.exchanges[find_event(tape, at) - 1], environment)


def dry_document(parent: "Parent", prepared: "Prepared") -> dict[str, object]:
    """What a fork would do, for programs."""
    plan = prepared.plan
    lanes = [
        {"lane": lane or None, "name": prepared.causality.name(lane), **kinds}
        for lane, kinds in _by_lane(parent.tape, plan).items()
    ]
    return {
        "tape": str(parent.path),
        "rerun": plan.rerun,
        "branch": list(plan.branch),
        **prepared.told,
        "lanes": lanes,
        "live_calls": len(plan.live),
    }


def _by_lane(tape: "Tape", plan: "ForkPlan") -> dict[str, dict[str, list[int]]]:
    """For each lane, which of its exchanges are reused, mutated and live."""
    from tapeproxy.tapes.cuts import rows_of

    kinds = (("reused", plan.served), ("mutated", plan.mutated), ("live", plan.live))
    return {
        lane: {word: [row.number for row in rows if row.number in kind] for word, kind in kinds}
        for lane, rows in rows_of(tape).items()
    }


def dry_lines(tape: "Tape", prepared: "Prepared") -> Iterator[str]:
    """What is changed, and lane by lane what a fork would do with the tape's exchanges."""
    plan = prepared.plan
    for line in prepared.lines:
        yield f"edit {printable(line)}"
    for line in prepared.added:
        yield f"edit {printable(line)}"
    for lane, kinds in _by_lane(tape, plan).items():
        parts = [f"{len(found)} {word} ({number_runs(found)})" for word, found in kinds.items() if found]
        yield f"{printable(prepared.causality.name(lane))}: {', '.join(parts) or 'nothing'}"
    about = "at most" if plan.rerun == "changed" else "about"
    yield f"{about} {count(len(plan.live), 'live call')}"


def closing_lines(forked: "Forked", settings: "ForkSettings") -> Iterator[str]:
    """What was reused, changed and asked anew, what differed, and where the child is."""
    for note in forked.notes:
        yield f"note: {block(note)}"
    if forked.unasked:
        yield f"not asked again: {count(len(forked.unasked), 'event')} of the tape ({number_runs(forked.unasked)})"
    if forked.covered:
        yield f"within tool calls: {count(len(forked.covered), 'event')} of the tape ({number_runs(forked.covered)})"
    yield f"{forked.reused} reused, {forked.mutated} mutated, {forked.live} live: {printable(str(settings.out))}"


def number_runs(numbers: Sequence[int]) -> str:
    """`1-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
