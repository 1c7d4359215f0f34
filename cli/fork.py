"""`tapeproxy fork`: parse, run, and say what was reused, changed and asked anew."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.recorded import warner, warnings
from tapeproxy.cli.rendering import block, count, printable
from tapeproxy.cli.replay import Teller
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.forked import Forked, ForkSettings
    from tapeproxy.proxy.guard import GuardChoice
    from tapeproxy.tapes.exchanges import Exchange, Tape
    from tapeproxy.tapes.forkplan import ForkPlan


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option("--at", required=True, type=click.IntRange(0), metavar="EVENT", help="Where to leave the tape; see show.")
@click.option("--body", metavar="TEXT|@FILE", help="Another body for this event's answer.")
@click.option(
    "--rerun",
    type=click.Choice(["future", "changed"]),
    default="future",
    show_default=True,
    help="What is asked anew: all that comes after the change, or of that only what is not asked as on the tape.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The child tape to write.")
@click.option("--force", is_flag=True, help="Replace the child tape if it exists.")
@click.option("--dry-run", is_flag=True, help="Say what would be reused and asked anew, and run nothing.")
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="Send what goes to HOST to URL instead.")
@click.option("--upstream-ca", type=click.Path(path_type=Path), help="More roots to trust upstream (PEM).")
@click.option("--client-cert", type=click.Path(path_type=Path), help="A client certificate with its key (PEM).")
@click.option("--keyless", multiple=True, metavar="NAME", help="A secret variable that no live call needs.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the agent then.")
@click.option(
    "--on-drift", type=click.Choice(["fail", "report"]), default="fail", show_default=True, help="As in a replay."
)
@click.option(
    "--guard",
    type=click.Choice(["auto", "landlock", "audit", "none"]),
    default="auto",
    show_default=True,
    help="What keeps the agent itself from the network; the proxy may go there.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but violations and warnings.")
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    at: int,
    body: str | None,
    rerun: Literal["future", "changed"],
    output: Path | None,
    force: bool,
    dry_run: bool,
    maps: tuple[str, ...],
    upstream_ca: Path | None,
    client_cert: Path | None,
    keyless: tuple[str, ...],
    timeout: float | None,
    on_drift: Literal["fail", "report"],
    guard: "GuardChoice",
    quiet: bool,
) -> int:
    """Run an agent again from a tape with one answer changed: what comes after it is asked anew, live.

    \b
    tapeproxy fork bug.tape.jsonl.gz --at 7 --body '{"found": false}' -o child.tape.jsonl.gz
    tapeproxy fork bug.tape.jsonl.gz --at 7 --dry-run

    What came before the change, and what is concurrent with it, is answered from the tape, without a call. The child is
    a whole tape: it replays, and can be forked again. The agent itself reaches the proxy and nothing else; the proxy
    reaches the world. See docs/FORK.md.
    """
    from tapeproxy.proxy.hybrid import open_parent, run_fork

    parent = open_parent(choose_tape(tape))
    plan = _plan(parent.tape, at, body, rerun)
    if dry_run:
        for line in dry_lines(parent.tape, plan):
            click.echo(line)
        return 0
    if output is None:
        raise UsageError("a fork needs a tape to write", fix="name one with -o")
    from tapeproxy.addons.hostmap import parse_map
    from tapeproxy.proxy.forked import ForkSettings
    from tapeproxy.proxy.guard import describe, establish

    settings = ForkSettings(
        parent=parent,
        plan=plan,
        out=output,
        environment=dict(os.environ),
        cwd=str(Path.cwd()),
        argv=agent_argv(ctx),
        force=force,
        edit=None if body is None else {"event": at, "body": body},
        hosts=parse_map(maps),
        upstream_ca=upstream_ca,
        client_certs=client_cert,
        guard=establish(guard, live=True),
        keyless=frozenset(keyless),
        on_drift=on_drift,
        timeout=timeout,
    )
    teller = Teller()
    if not quiet:
        click.echo(f"tapeproxy: {printable(describe(settings.guard))}", err=True)
    forked = asyncio.run(run_fork(settings, teller.notice, warner(strict=False)))
    for line in (*warnings(forked.recorded), *(() if quiet else closing_lines(forked, settings))):
        click.echo(f"tapeproxy: {line}", err=True)
    return forked.exit_code


def dry_lines(tape: "Tape", plan: "ForkPlan") -> Iterator[str]:
    """Lane by lane, what a fork would do with the tape's exchanges."""
    from tapeproxy.tapes.causality import Causality
    from tapeproxy.tapes.cuts import rows_of

    name = Causality.of(tape).name
    for lane, rows in rows_of(tape).items():
        numbers = [row.number for row in rows]
        parts = [
            f"{len(found)} {word} ({_numbers(found)})"
            for word, kind in (("reused", plan.served), ("mutated", plan.mutated), ("live", plan.live))
            if (found := [number for number in numbers if number in kind])
        ]
        yield f"{printable(name(lane))}: {', '.join(parts) or 'nothing'}"
    yield f"about {count(len(plan.live), 'live call')}"


def closing_lines(forked: "Forked", settings: "ForkSettings") -> Iterator[str]:
    """What was reused, changed and asked anew, what differed, and where the child is."""
    for note in forked.notes:
        yield f"note: {block(note)}"
    if forked.unasked:
        yield f"not asked again: {count(len(forked.unasked), 'event')} of the tape ({_numbers(forked.unasked)})"
    yield f"{forked.reused} reused, {forked.mutated} mutated, {forked.live} live: {printable(str(settings.out))}"


def _plan(tape: "Tape", at: int, body: str | None, rerun: Literal["future", "changed"]) -> "ForkPlan":
    from tapeproxy.tapes.causality import Causality
    from tapeproxy.tapes.forkplan import fork_at

    mutated: dict[int, Exchange] = {}
    if body is not None:
        if not 0 < at <= len(tape.exchanges):
            raise UsageError(f"there is no event {at} on the tape", fix="see: tapeproxy show")
        mutated[at] = _with_body(tape.exchanges[at - 1], _content(body))
    return fork_at(tape, Causality.of(tape), at, mutated, rerun=rerun)


def _content(body: str) -> bytes:
    if not body.startswith("@"):
        return body.encode()
    try:
        return Path(body[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"the body cannot be read: {(error.strerror or str(error)).lower()}", where=body[1:]) from None


def _with_body(exchange: "Exchange", body: bytes) -> "Exchange":
    """The exchange with another body of its answer, in one piece and without a content coding."""
    from tapeproxy.tapes.exchanges import Chunk

    response = exchange.response
    if response is None:
        raise UsageError(f"event {exchange.number} has no answer to change")
    headers = tuple(pair for pair in response.headers if pair[0].lower() != b"content-encoding")
    return replace(exchange, response=replace(response, headers=headers), chunks=[Chunk(response.t, body)])


def _numbers(numbers: Sequence[int]) -> str:
    """`1-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
