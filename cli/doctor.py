"""`tapeproxy doctor`: what in a program keeps its replays from being the same?"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tapeproxy.cli import findings, symptoms
from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.newtape import new_tape, record_to_new_tape
from tapeproxy.cli.progress import repeat_told
from tapeproxy.cli.rendering import count, echo, printable, screen_of
from tapeproxy.cli.runoptions import NAMES, RunOptions, run_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.recorded import Recorded
    from tapeproxy.proxy.repeating import Repeated
    from tapeproxy.proxy.replayed import ReplaySettings
    from tapeproxy.proxy.sources import Scanned
    from tapeproxy.proxy.symptoms import Origins, Symptom

FOUND, STOPPED = 1, 130
"""Exit codes (docs/CLI.md): --fail-on-findings, and Ctrl-C."""
_FOR_RUNS = ("times", "tape", "maps", "upstream_ca", *NAMES)
"""Parameters that mean nothing to a scan."""


class DoctorCommand(AgentCommand):
    """With --scan the words are files to scan, which look like an agent's command and are none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--scan" in args and "--" not in args:
            return click.Command.parse_args(self, ctx, args)
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found. `repeated` and `symptoms` are of a program that was run, `tape` is what it was replayed from."""

    scanned: "Scanned"
    tape: Path | None = None
    repeated: "Repeated | None" = None
    symptoms: "tuple[Symptom, ...]" = ()

    @property
    def levels(self) -> list[Any]:
        return [symptom.level for symptom in self.symptoms] + [one.rule.level for one in self.scanned.findings]

    def exit_code(self, *, fails: bool) -> int:
        if self.repeated is not None and self.repeated.stopped:
            return STOPPED
        return FOUND if fails and any(level != "note" for level in self.levels) else 0


@click.command(cls=DoctorCommand, context_settings=HELP)
@click.argument("paths", nargs=-1, metavar="[FILE_OR_FOLDER]...", type=click.Path(path_type=Path))
@click.option("--scan", "scans", is_flag=True, help="Only read these files or folders; run nothing.")
@click.option("--tape", metavar="TAPE", help="Replay this tape instead of recording a new one.")
@click.option("--times", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="Replay so often.")
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="As for record.")
@click.option("--upstream-ca", type=click.Path(path_type=Path), help="As for record.")
@run_options
@click.option("--fail-on-findings", is_flag=True, help="Exit 1 when there is an error or a warning; notes don't count.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    scans: bool,
    tape: str | None,
    times: int,
    maps: tuple[str, ...],
    upstream_ca: Path | None,
    run: RunOptions,
    fail_on_findings: bool,
    as_json: bool,
) -> int:
    """Find what would make replays of a program differ, with the line and what to do.

    \b
    tapeproxy doctor -- python agent.py        run it once for real, replay it 3 times, read its files
    tapeproxy doctor --tape bug.tape.jsonl.gz  without the real run
    tapeproxy doctor --scan agent.py lib/      only read these files: nothing is run

    The run is recorded, and costs what a run costs; what the agent prints goes to stderr. Then it is replayed (the
    other options are those of `replay`), and everything is named that was not as on the tape or not the same in all
    replays, with the values side by side. Where there is something to explain, it is replayed once more to see what was
    read, at which line, that went into it. The tape stays in .tapes.

    The scan knows what the shim can't reach: process ids and addresses of objects, clocks and generators below Python,
    the order of folders, sets and threads, clients that go past the proxy. What is taped anyway (time, random, uuid,
    numpy's generators ...) is no finding. Of a command, its script is read, and what that imports from beside it.
    `# tapeproxy: ok` at the end of a line silences it, `# tapeproxy: ok TP101` one rule. docs/DOCTOR.md has the rules.

    \b
    Exit codes: 0 it could be looked at, whatever was found
                1 with --fail-on-findings: an error or a warning
                130 stopped by Ctrl-C
    """
    argv = agent_argv(ctx)
    if not scans and (paths or not (argv or tape)):
        raise UsageError("there is no command to run", fix="tapeproxy doctor -- python agent.py")
    how = Record(maps, upstream_ca, run.timeout)
    diagnosis = _scan(ctx, paths, argv) if scans else _run(argv, tape, times, run, how)
    if diagnosis is None:
        return STOPPED
    if as_json:
        click.echo(json.dumps(_document(diagnosis), indent=2))
    else:
        for line in _lines(diagnosis):
            echo(line)
    return diagnosis.exit_code(fails=fail_on_findings)


@dataclass(frozen=True, slots=True)
class Record:
    """How the program is recorded."""

    maps: tuple[str, ...]
    upstream_ca: Path | None
    timeout: float | None


def _scan(ctx: click.Context, paths: tuple[Path, ...], argv: tuple[str, ...]) -> Diagnosis:
    from tapeproxy.proxy.sources import find_files, scan_files

    given = [name for name in _FOR_RUNS if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if argv or given:
        what = "a command" if argv else f"--{given[0].replace('maps', 'map').replace('_', '-')}"
        raise UsageError(f"{what} is for a run, and --scan runs nothing", fix="leave one of them out")
    if not paths:
        raise UsageError("--scan needs a file or a folder", fix="for this folder: tapeproxy doctor --scan .")
    return Diagnosis(scan_files(find_files(paths)))


def _run(argv: tuple[str, ...], tape: str | None, times: int, run: RunOptions, how: Record) -> Diagnosis | None:
    """Record the program if there is no tape, replay it, and look. None when somebody wanted the recording to end."""
    from tapeproxy.proxy.sources import own_files, scan_files
    from tapeproxy.proxy.symptoms import symptoms as shown

    if tape is None:
        recorded = _record(argv, how)
        if recorded.outcome is not None and recorded.outcome.stopped_by == "user":
            return None
        path = recorded.path
    else:
        path = choose_tape(tape)
    # After the recording, which needs the network: this may leave it, for good.
    settings = run.settings(path, argv)
    repeated = asyncio.run(repeat_told(settings, times, show_output=False))
    origins = _origins(settings, repeated)
    files = own_files(argv or repeated.tape.head.argv, Path())
    return Diagnosis(scan_files(files), path, repeated, tuple(shown(repeated.tape, repeated.runs, origins)))


def _origins(settings: "ReplaySettings", repeated: "Repeated") -> "Origins":
    """What was read, and where, that went into the differences of the first replay that had any: in one more replay."""
    from tapeproxy.proxy.provenance import explain_by_reads
    from tapeproxy.proxy.symptoms import origins

    faulty = [run.replayed for run in repeated.runs if run.replayed.violations or run.replayed.drifts]
    if not faulty or repeated.stopped:
        return {}
    return origins(asyncio.run(explain_by_reads(settings, faulty[0])))


def _record(argv: tuple[str, ...], how: Record) -> "Recorded":
    """Record the program. Raises what `record` raises, and UsageError when the tape is not whole."""
    from tapeproxy.addons.hostmap import parse_map
    from tapeproxy.cli.recorded import closing_lines
    from tapeproxy.proxy.recorded import RecordSettings

    settings = RecordSettings(
        tape=new_tape(argv),
        argv=argv,
        environment=dict(os.environ),
        cwd=str(Path.cwd()),
        hosts=parse_map(how.maps),
        upstream_ca=how.upstream_ca,
        timeout=how.timeout,
    )
    with _printing_to_stderr():
        recorded = record_to_new_tape(settings)
    for line in closing_lines(recorded, argv):
        click.echo(f"tapeproxy: {line}", err=True)
    if recorded.failure is not None:
        raise UsageError(f"the tape is not whole: {recorded.failure}", where=str(recorded.path))
    return recorded


@contextlib.contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """Have what children print to stdout go to stderr: ours is for the diagnosis."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _document(diagnosis: Diagnosis) -> dict[str, object]:
    scanned, repeated = diagnosis.scanned, diagnosis.repeated
    document: dict[str, object] = {}
    if repeated is not None:
        document = {
            "tape": str(diagnosis.tape),
            "replays": len(repeated.runs),
            "identical": repeated.identical,
            "stopped": repeated.stopped,
            "symptoms": [symptom.to_json() for symptom in diagnosis.symptoms],
        }
    return document | {"files": scanned.files, "findings": [finding.to_json() for finding in scanned.findings]}


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    screen, scanned, repeated = screen_of(sys.stdout), diagnosis.scanned, diagnosis.repeated
    if repeated is not None:
        yield from symptoms.listing(diagnosis.symptoms, len(repeated.runs), screen)
    yield from findings.listing(scanned.findings, screen)
    parts = [] if repeated is None else [f"{repeated.identical}/{len(repeated.runs)} replays identical"]
    parts.append("no Python file was read" if not scanned.files else f"{count(scanned.files, 'file')} read")
    yield f"{findings.summary(diagnosis.levels) or 'nothing found'}: {', '.join(parts)}"
    if repeated is not None:
        yield f"the tape is {printable(str(diagnosis.tape))}"
