"""`tapeproxy doctor`: what in a program keeps its replays from being the same?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.findings import listing, summary
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import count, echo, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.sources import Scanned

FOUND = 1
"""The exit code of --fail-on-findings (docs/CLI.md)."""


class DoctorCommand(AgentCommand):
    """With --scan the words are files to scan, which look like an agent's command and are none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--scan" in args and "--" not in args:
            return click.Command.parse_args(self, ctx, args)
        return super().parse_args(ctx, args)


@click.command(cls=DoctorCommand, context_settings=HELP)
@click.argument("paths", nargs=-1, metavar="[FILE_OR_FOLDER]...", type=click.Path(path_type=Path))
@click.option("--scan", "scans", is_flag=True, help="Only read these files or folders; run nothing.")
@click.option("--fail-on-findings", is_flag=True, help="Exit 1 when there is an error or a warning; notes don't count.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, paths: tuple[Path, ...], scans: bool, fail_on_findings: bool, as_json: bool) -> int:
    """Find what would make replays of a program differ, with the line and what to do.

    \b
    tapeproxy doctor --scan agent.py lib/      read the files: nothing is run

    The scan knows what the shim can't reach: process ids and addresses of objects, clocks and generators below Python,
    the order of folders, sets and threads, clients that go past the proxy. What is taped anyway (time, random, uuid,
    numpy's generators ...) is no finding. `# tapeproxy: ok` at the end of a line silences it, `# tapeproxy: ok TP101`
    one rule. The rules are in docs/DOCTOR.md.
    """
    from tapeproxy.proxy.sources import find_files, scan_files

    if not scans or agent_argv(ctx):
        raise UsageError("say what to scan", fix="tapeproxy doctor --scan FILE_OR_FOLDER...")
    if not paths:
        raise UsageError("--scan needs a file or a folder", fix="for this folder: tapeproxy doctor --scan .")
    scanned = scan_files(find_files(paths))
    if as_json:
        click.echo(json.dumps(_document(scanned), indent=2))
    else:
        _print(scanned)
    found = any(finding.rule.level != "note" for finding in scanned.findings)
    return FOUND if fail_on_findings and found else 0


def _document(scanned: "Scanned") -> dict[str, object]:
    return {"files": scanned.files, "findings": [finding.to_json() for finding in scanned.findings]}


def _print(scanned: "Scanned") -> None:
    import sys

    for line in listing(scanned.findings, screen_of(sys.stdout)):
        echo(line)
    files = count(scanned.files, "file")
    if not scanned.files:
        echo("there is no Python file")
    elif scanned.findings:
        echo(f"{files}: {summary(finding.rule.level for finding in scanned.findings)}")
    else:
        echo(f"{files}: nothing found")
