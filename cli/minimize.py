"""`tapeproxy minimize`: find the values of a tape that a failure needs, and write a tape of them."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.checkoptions import agent_options, check_options
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import count, duration, echo, printable, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.checks import Check
    from tapeproxy.proxy.guard import GuardChoice
    from tapeproxy.proxy.minimizing import Minimized
    from tapeproxy.proxy.trials import Probed

_SHOWN = 50
"""Values that are listed; the document and the new tape's head have more."""


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="SMALL", help="The tape to write.")
@click.option("--force", is_flag=True, help="Replace SMALL if it exists.")
@check_options
@click.option("--max-probes", type=click.IntRange(1), metavar="N", help="Stop the search after so many.")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Agents at the same time.")
@click.option("--text", default="", help="What a model says in a neutral answer.  [default: nothing]")
@agent_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of each probe.")
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    output: Path | None,
    force: bool,
    judge: "Check | None",
    max_probes: int | None,
    jobs: int,
    text: str,
    timeout: float | None,
    guard: "GuardChoice",
    allow: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Find the values of a tape that a failure needs.

    \b
    tapeproxy minimize bad.tape.jsonl.gz -o small.tape.jsonl.gz
    tapeproxy minimize bad.tape.jsonl.gz -o small.tape.jsonl.gz -j 4 --check '! grep -q poison "$TAPEPROXY_STDOUT"'

    The agent is replayed, offline, with ever fewer of the values that the tape holds in answers, in results of @tool,
    and where it was made with --io in the files that the agent read. All others are neutral: "" for a string, 0 for a
    number, false for true. Status, headers and the structure of JSON stay, and the words of a model's protocol; the
    pieces of a streamed text are one value. What is left is 1-minimal: make any one of it neutral, and the failure is
    gone. The new tape has those values, and the requests that the agent made then: it replays.

    Requests are not compared meanwhile: the n-th of a lane gets the lane's n-th answer if it has its method and host,
    and the n-th call of a tool what that gave. A run that asks for more, or elsewhere, counts as one that does not
    fail.

    The failure is how the run ends on the tape as it is: its exit code, and where it has died of a Python exception,
    which one, raised on which line; or what --check or --predicate judge as bad (see `bisect`). Ctrl-C and --max-probes
    end the search; the smallest tape so far is written even so.

    \b
    Exit codes: 0 the tape is written
                2 there is nothing to minimize, or SMALL exists
                130 stopped; the best so far is written

    --json prints tape (the new one), kept (of each exchange, its number, or read, its record, and name; path, value and
    neutral, long texts cut), values (how many there were), exchanges, of_exchanges, probes, took_ns, failure, stopped
    (null, or why) and differences (what a replay of the new tape finds other than on it: nothing, if all is well).
    """
    from tapeproxy.proxy.guard import HostPort, establish
    from tapeproxy.proxy.minimizing import MinimizeSettings, minimize_tape
    from tapeproxy.proxy.replayed import ReplaySettings

    path = choose_tape(tape)
    if output is None:
        raise UsageError("there is no tape to write", fix="name one with -o")
    settings = MinimizeSettings(
        replay=ReplaySettings(
            tape=path,
            environment=dict(os.environ),
            argv=agent_argv(ctx),
            timeout=timeout,
            guard=establish(guard, [HostPort.parse(place) for place in allow]),
        ),
        output=output,
        check=judge,
        jobs=jobs,
        most=max_probes,
        text=text,
        force=force,
    )
    done = minimize_tape(settings, _silent if quiet else _tell)
    if as_json:
        echo(json.dumps(done.to_json(), indent=2))
    else:
        for line in _lines(done):
            echo(line)
    return 130 if done.interrupted else 0


def _tell(probed: "Probed") -> None:
    word = screen_of(sys.stderr).paint("fails", "red") if probed.failed else "does not fail"
    values = count(probed.kept, "value")
    click.echo(f"tapeproxy: probe {probed.number}: {values}: {word}, {duration(probed.took_ns)}", err=True)


def _silent(probed: "Probed") -> None:
    pass


def _lines(done: "Minimized") -> Iterator[str]:
    screen = screen_of(sys.stdout)
    yield f"failure: {printable(done.failure)}"
    if done.stopped:
        yield f"the search ended early: {done.stopped}; what is left may not all matter"
    kept = screen.paint(f"{len(done.kept)} of {count(done.values, 'value')}", "red", bold=True)
    yield f"it needs {kept}; the run asks for {done.exchanges} of {count(done.of, 'exchange')}"
    for key, name, value in done.kept[:_SHOWN]:
        where = name or f"exchange {key.source.number}"
        yield f"  {printable(where)}  {printable(value.path)}  {printable(json.dumps(value.value))}"
    if len(done.kept) > _SHOWN:
        yield f"  and {len(done.kept) - _SHOWN} more"
    if done.differences:
        yield f"a replay of the new tape, which compares, is not the same: {printable(done.differences[0])}"
    again = shlex.quote(str(done.path)) + (" --io tape" if done.reads else "")
    took = duration(done.took_ns)
    yield f"{count(done.probes, 'probe')}, {took}; to see it fail: tapeproxy replay {printable(again)}"
