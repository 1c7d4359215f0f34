"""`tapeproxy repro`: make a test of a taped run, and see that it does what it says."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.leftover import suspicious
from tapeproxy.cli.rendering import echo, printable, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.freezing import Frozen
    from tapeproxy.tapes.frozentests import Expect

UNVERIFIED = 1


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option("--pytest", "as_pytest", is_flag=True, help="Write a test for pytest.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The test file to write.")
@click.option(
    "--expect",
    type=click.Choice(["same", "fixed"]),
    default="same",
    show_default=True,
    help="What the test asks for: the run as it was recorded, or that it no longer fails.",
)
@click.option("--python", default=sys.executable, metavar="PATH", help="The Python that has pytest and tapeproxy.")
@click.option("--timeout", type=click.IntRange(1), metavar="SECONDS", help="How long the run may take in the test.")
@click.option("--force", is_flag=True, help="Replace FILE and its tape if they exist.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    as_pytest: bool,
    output: Path | None,
    expect: "Expect",
    python: str,
    timeout: int | None,
    force: bool,
    as_json: bool,
) -> int:
    """Make a test of a taped run, with its tape beside it.

    \b
    tapeproxy repro bug.tape.jsonl.gz --pytest -o tests/test_bug.py
    tapeproxy repro bug.tape.jsonl.gz --pytest -o tests/test_bug.py --expect fixed
    tapeproxy repro bug.tape.jsonl.gz --pytest -o tests/test_bug.py -- python agent.py

    The tape is copied to where the plugin of pytest looks for it, tests/tapes/test_bug/test_bug.run1.tape.jsonl.gz, and
    the test replays the taped command: offline, without a key, on any machine that has the repository. It asks for what
    the recording showed: the exit code, the exception that the run died of, every exchange and the trace hash. So the
    test of a run that failed passes while the bug is there. With --expect fixed it asks for an exit code of 0 instead,
    and fails until the bug is gone.

    Then the run is replayed and the test is run, each in a fresh process. The first lines of the file say whether it
    was verified, when, and if not, why not; it is there in either case.

    The command runs in the folder where it was recorded, which must be in the test's repository; in one that is given
    after -- it is the working folder. A Python at its beginning becomes the one that runs the test. Other absolute
    paths in it are told.

    \b
    Exit codes: 0 the test is verified
                1 it is not: the run does not go as it was recorded, or pytest could not show it
                2 the tape does not hold a whole run with its command, or FILE exists

    --json prints: test and tape (paths), expect, recorded (in words), exchanges, trace, verified, doubt (null, or why
    not), foreign (words of the command that are paths outside of the repository).
    """
    from tapeproxy.proxy.freezing import FreezeSettings, freeze

    path = choose_tape(tape)
    if not as_pytest or output is None:
        fix = f"tapeproxy repro {printable(str(path))} --pytest -o tests/test_bug.py"
        raise UsageError("there is one kind of test, for pytest, and it needs a file's name", fix=fix)
    settings = FreezeSettings(
        tape=path,
        output=output,
        here=Path.cwd(),
        expect=expect,
        argv=agent_argv(ctx),
        python=python,
        timeout=timeout,
        force=force,
    )
    done = freeze(settings)
    if as_json:
        echo(json.dumps(done.to_json(), indent=2))
    else:
        for line in _lines(done):
            echo(line)
    for line in suspicious(done.tape, os.environ):
        click.echo(f"tapeproxy: {line}", err=True)
    return UNVERIFIED if done.doubt else 0


def _lines(done: "Frozen") -> Iterator[str]:
    screen = screen_of(sys.stdout)
    yield f"test: {printable(str(done.test))}"
    yield f"tape: {printable(str(done.tape))}"
    yield f"recorded: {printable(done.recorded)}"
    if done.doubt:
        yield f"{screen.paint('unverified', 'red', bold=True)}: {printable(done.doubt)}"
    else:
        goes = "the test passes" if done.expect == "same" else "the test fails, as the recorded run did"
        yield f"{screen.paint('verified', 'green', bold=True)}: the run goes as it was recorded, and {goes}"
    for word in done.foreign:
        yield f"note: the command names {printable(word)}, which other machines may not have"
