"""`tapeproxy replay`: parse, run, and say how it went."""

import asyncio
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import printable, screen_of
from tapeproxy.cli.replayed import listing, origins, silence, summary, unexplained, warnings
from tapeproxy.cli.reverseoption import reverse_option
from tapeproxy.cli.runoptions import RunOptions, run_options
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.outcomes import REPAIRED

if TYPE_CHECKING:
    from tapeproxy.proxy.replayed import Replayed, ReplaySettings
    from tapeproxy.proxy.replaying import Replaying
    from tapeproxy.tapes.faults import Fault
    from tapeproxy.tapes.fronts import Front
    from tapeproxy.tapes.violations import Drift, Violation

_SHOWN = 3
"""Violations printed in full; of the later ones only the request."""


class Pace(click.ParamType[float | None]):
    """`none`, `recorded` or a factor, as a speed: None, 1.0 or the number."""

    name = "pace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value in (None, "none"):
            return None
        if value == "recorded":
            return 1.0
        try:
            speed = float(value)
        except ValueError:
            speed = 0.0
        if not 0 < speed < float("inf"):
            self.fail(f"{value!r} is not none, recorded or a factor above 0 (2 is twice as fast)", param, ctx)
        return speed


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option(
    "--pace",
    type=Pace(),
    default="none",
    metavar="none|recorded|FACTOR",
    help="When chunks arrive: at once, as recorded, or FACTOR times as fast.  [default: none]",
)
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The proxy's port.  [default: a free one]")
@run_options
@reverse_option
@click.option("--java", is_flag=True, help="Lead Java here too, by JAVA_TOOL_OPTIONS, as where it was recorded so.")
@unlock_options
@click.option("--inject", multiple=True, metavar="FAULT", help="Give some requests a fault; see below.")
@click.option("--explain", is_flag=True, help="After a violation or drift, run again and say which line it came from.")
@click.option(
    "--require-all",
    is_flag=True,
    help="Exit 4 when something on the tape was not asked for, or not said on a WebSocket, and list it.",
)
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a JSON report.")
@click.option(
    "--own-tape",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a tape of the replay itself.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but violations and warnings.")
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    pace: float | None,
    port: int,
    run: RunOptions,
    fronts: "tuple[Front, ...] | None",
    java: bool,
    unlocking: Unlocking,
    inject: tuple[str, ...],
    explain: bool,
    require_all: bool,
    report: Path | None,
    own_tape: Path | None,
    quiet: bool,
) -> int:
    """Run an agent against a tape: offline, without a key.

    \b
    tapeproxy replay                               the last tape and its own command
    tapeproxy replay bug.tape.jsonl.gz
    tapeproxy replay bug.tape.jsonl.gz -- python agent.py --verbose

    The tape server has no way upstream, and on Linux the run is kept from the network altogether (--guard). A request
    that is not on the tape is a violation: it is answered with status 470, explained on the terminal, and makes the
    exit code 3 whatever the agent does about it. Requests are told apart by the rules on the tape and those given here,
    in tapeproxy.toml or in [tool.tapeproxy]. Otherwise the exit code is the agent's; 4 when a server of the run
    answered another way than on the tape, or with --require-all when something was left over; 124 after --timeout.

    --inject tests how the agent takes an error: 'host=api.openai.com nth=1 status=429 retry-after=2'. First which
    requests: host=, path=, method= (globs), nth=N, 2-4 or 3- (of those, as they come). Then what they get: status=
    (with header=NAME:VALUE, retry-after=, body=), cut=BYTES (of the answer after its head, then the connection ends),
    reset, hang (no answer), and latency=200ms, alone or with one of these. Instead of its answer means that the next
    try finds the answer on the tape. A fault that no request got exits 4. Positions are not compared after a fault.

    --explain: a replay that ended in a violation or a drift is run once more, silently, and the report says which read
    of the clock, of chance or of the environment, at which line of your code, is in what was asked differently. The
    agent does everything twice then, what it does to files and databases too.

    --reverse gives base URLs a port, as of record. Without it those get one that had one while recording.

    --own-tape makes a tape of what the agent asked in the replay, with the answers it got, the 470s too: for show, and
    for diff with the tape that was replayed. It replaces FILE.
    """
    from tapeproxy.proxy.guard import describe
    from tapeproxy.proxy.replayed import DRIFT, VIOLATION
    from tapeproxy.proxy.replaying import replay

    if explain and run.no_shim:
        raise UsageError("--explain needs the shim, which --no-shim leaves out", fix="leave one of them out")
    path = choose_tape(tape)
    if tape is None and not quiet:
        click.echo(f"tapeproxy: replaying the last tape, {printable(str(path))}", err=True)
    faults = _faults(inject) if inject else ()
    settings = run.settings(path, agent_argv(ctx), pace=pace, port=port, ask=unlocking.ask)
    settings = dataclasses.replace(settings, faults=faults, fronts=fronts, java=java)
    if own_tape is not None:
        _check_own_tape(path, faulty=bool(faults))
    plan = settings.guard
    # Said once the tape is open: an error about the tape comes alone.
    teller = Teller(describe(plan) if plan.reason or not quiet else "")
    own = None if own_tape is None else _Taped(teller)
    if own is None:
        result = asyncio.run(replay(settings, teller.notice, teller.begin))
    else:
        result = asyncio.run(replay(settings, own.notice, own.begin, own.tape.witness))
    missed = require_all and bool(result.unused or result.unsaid)
    if missed and result.exit_code != VIOLATION:
        result = dataclasses.replace(result, exit_code=DRIFT)
    tell(result, settings, teller, quiet=quiet, listed=missed)
    if explain:
        result = explained(result, settings)
    elif not quiet and not run.no_shim and (line := unexplained(result, path, settings.argv)):
        click.echo(f"tapeproxy: {line}", err=True)
    if report is not None:
        write_report(report, {"tape": str(path)} | result.to_json())
    if own is not None and own_tape is not None:
        own.write(own_tape, result)
    return result.exit_code


def _check_own_tape(tape: Path, *, faulty: bool) -> None:
    from tapeproxy.proxy.tapefile import is_locked

    if faulty:
        raise UsageError("--own-tape can't hold what --inject gives", fix="leave one of them out")
    if tape.is_file() and is_locked(tape):
        raise UsageError("the tape is encrypted, and the replay's own would not be", where=str(tape))


class _Taped:
    """Has a tape made of the replay that `teller` tells of."""

    def __init__(self, teller: "Teller") -> None:
        from tapeproxy.proxy.owntape import OwnTape

        self.tape = OwnTape()
        self._teller = teller
        self._session: Replaying

    def begin(self, session: "Replaying") -> None:
        self._session = session
        if session.shims is not None and session.shims.hints is not None:
            session.shims.hints.heard = lambda value, _place: self.tape.hear(value)
        self._teller.begin(session)

    def notice(self, found: "Violation | Drift") -> None:
        self.tape.notice(found)
        self._teller.notice(found)

    def write(self, path: Path, result: "Replayed") -> None:
        """Raises TapeWriteError."""
        wire = self._session.wire
        self.tape.write(path, wire.tape, self._session.redactor, wire.command(), result.outcome)


def _faults(texts: tuple[str, ...]) -> "tuple[Fault, ...]":
    from tapeproxy.tapes.faults import parse_fault

    return tuple(map(parse_fault, texts))


class Teller:
    """Prints violations and drifts as they happen, the first ones whole.

    `guard`: what to say of the guard in force. `taped_in`: the folder of the recording, known after `begin`. `run`: the
    name of the replay, where there are several.
    """

    def __init__(self, guard: str = "", *, run: str = "") -> None:
        self.taped_in = ""
        self._run = f"{run}: " if run else ""
        self._guard = guard
        self._told = 0

    def begin(self, replaying: "Replaying") -> None:
        """Say what guards the run and what is wrong with the tape itself."""
        self.taped_in = replaying.tape.head.cwd
        if self._guard:
            click.echo(f"tapeproxy: {printable(self._guard)}", err=True)
            self._guard = ""
        if replaying.ending is None:
            return  # called again when it is known
        seal = replaying.tape.seal
        for line in not_whole(sealed=replaying.ending.sealed, outcome="" if seal is None else seal.outcome):
            click.echo(f"tapeproxy: {line}", err=True)

    def notice(self, found: "Violation | Drift") -> None:
        """Print one, whole or in a line."""
        from tapeproxy.tapes.violations import Violation

        self._told += 1
        screen = screen_of(sys.stderr)
        word = screen.paint("violation", "red", bold=True) if isinstance(found, Violation) else "drift"
        text = found.to_text() if self._told <= _SHOWN else f"{found.what}: {found.request}"
        click.echo(
            f"tapeproxy: {self._run}{word}: " + "\n".join(printable(line) for line in text.split("\n")), err=True
        )
        if self._told == _SHOWN:
            click.echo("tapeproxy: further ones are told in a line; --report FILE has them whole", err=True)


def not_whole(*, sealed: bool, outcome: str) -> Iterator[str]:
    """What is to be said of a tape whose recording did not end in order; `outcome`: that of its seal."""
    if not sealed:
        yield "warning: the tape was interrupted; it is replayed as far as it goes"
    elif outcome == REPAIRED:
        yield "warning: the tape is a repaired one, of an interrupted recording; it is replayed as far as it goes"


def tell(result: "Replayed", settings: "ReplaySettings", teller: Teller, *, quiet: bool, listed: bool = False) -> None:
    """Say how the replay went; `listed`: with the exchanges that were not asked for."""
    for line in told(result, settings, teller, quiet=quiet, listed=listed):
        click.echo(f"tapeproxy: {line}", err=True)


def told(
    result: "Replayed", settings: "ReplaySettings", teller: Teller, *, quiet: bool = False, listed: bool = False
) -> list[str]:
    """What there is to say of a replay, in lines."""
    screen = screen_of(sys.stderr)
    lines = [*warnings(result)]
    lines += [] if quiet else [summary(result, settings.tape)]
    lines += ["\n".join(listing(result.unused, screen))] if listed and result.unused else []
    if said := silence(result, teller.taped_in, str(Path.cwd()), screen):
        lines.append(said)
    return lines


def explained(result: "Replayed", settings: "ReplaySettings") -> "Replayed":
    """Say where the differences come from, and put that into the result."""
    from tapeproxy.proxy.provenance import explain_by_reads

    if result.outcome is not None and result.outcome.stopped_by == "user":
        return result
    found = asyncio.run(explain_by_reads(settings, result))
    if not found and (result.violations or result.drifts):
        click.echo("tapeproxy: --explain: nothing here differs from a taped request in its values", err=True)
    word = screen_of(sys.stderr).paint("provenance", bold=True)
    for text in origins(found, str(Path.cwd())):
        click.echo(f"tapeproxy: {word}: " + "\n".join(printable(line) for line in text.split("\n")), err=True)
    return dataclasses.replace(result, provenance=found)


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    """Write the JSON report. Raises UsageError when the file can't be written."""
    import orjson

    try:
        path.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise UsageError(
            f"the report cannot be written: {(error.strerror or str(error)).lower()}", where=str(path)
        ) from None
