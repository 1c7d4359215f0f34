"""`tapeproxy bisect`: find the event, or the commit, at which a run turns bad."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.checkoptions import check_options
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import block, count, duration, echo, printable, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.bisecting import Told
    from tapeproxy.proxy.checks import Check
    from tapeproxy.proxy.commitprobes import CommitProbes, CommitSettings
    from tapeproxy.tapes.bisecting import Found, Unsound

STOPPED = 130


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option("--commits", metavar="GOOD..BAD", help="Bisect the code: replay the tape at each commit, offline.")
@click.option("--setup", metavar="CMD", help="Builds a commit, for the shell; where it fails, the commit is skipped.")
@check_options
@click.option(
    "-r", "--repeat", default=1, show_default=True, type=click.IntRange(1), help="Probe so often before it is good."
)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop each agent then.")
@click.option(
    "--guard",
    type=click.Choice(["auto", "namespace", "landlock", "audit", "none"]),
    default="auto",
    show_default=True,
    help="What keeps the agent from the network, as in `replay`.",
)
@click.option("--allow", multiple=True, metavar="HOST:PORT", help="What may be reached all the same.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    tape: str | None,
    commits: str | None,
    setup: str | None,
    judge: "Check | None",
    repeat: int,
    timeout: float | None,
    guard: str,
    allow: tuple[str, ...],
    as_json: bool,
) -> int:
    """Find the event or the commit at which a run turns bad.

    \b
    tapeproxy bisect good.tape.jsonl.gz --commits v1.2..HEAD -- python agent.py

    """
    path = choose_tape(tape)
    if commits is None:
        raise UsageError("--commits is missing")
    words = [] if timeout is None else ["--timeout", str(timeout)]
    words += ["--guard", guard, *(word for place in allow for word in ("--allow", place))]
    settings = _commit_settings(path, commits, agent_argv(ctx), words, setup or "", judge)
    return _bisect_commits(settings, repeat, as_json=as_json)


def _commit_settings(
    tape: Path, commits: str, argv: tuple[str, ...], words: Sequence[str], setup: str, judge: "Check | None"
) -> "CommitSettings":
    from tapeproxy.proxy.checks import by_exit
    from tapeproxy.proxy.commitprobes import CommitSettings
    from tapeproxy.proxy.repository import Repository
    from tapeproxy.proxy.tapedrun import taped_argv
    from tapeproxy.proxy.tapefile import load

    good, dots, bad = commits.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise UsageError(f"--commits {commits!r} is not GOOD..BAD", fix="as in: --commits v1.2..HEAD")
    loaded = load(tape)[0]  # what is wrong with the tape is no commit's fault
    repository = Repository(Path.cwd())
    # A check may look at what comes after the first violation; an exit code is decided by it.
    most = ["--max-violations", "1"] if judge is None else []
    where = tape.absolute()

    def replay(report: Path, agent: tuple[str, ...]) -> list[str]:
        # -P: what lies in the commit's folder is not ours to import.
        ours = [sys.executable, "-P", "-m", "tapeproxy.cli.main", "replay", str(where), "--report", str(report)]
        return [*ours, *words, *most, "--", *agent]

    return CommitSettings(
        repository=repository,
        commits=repository.commits(good, bad),
        tape=where,
        argv=argv or taped_argv(loaded, tape),
        replay=replay,
        environment=dict(os.environ),
        setup=setup,
        check=judge or by_exit,
    )


def _bisect_commits(settings: "CommitSettings", repeat: int, *, as_json: bool) -> int:
    from tapeproxy.proxy.bisecting import search, until_signalled
    from tapeproxy.proxy.commitprobes import CommitProbes
    from tapeproxy.tapes.bisecting import Unsound, search_turn

    commits = settings.commits
    if len(commits) < 2:
        raise UsageError("good and bad are the same commit, so there is nothing between them")
    probes = CommitProbes(settings)
    teller = Teller(lambda place: f"{commits[place].short} {commits[place].subject}", "commit")
    steps = search_turn(len(commits) - 1, repeats=repeat, ends="if-needed")
    try:
        found = asyncio.run(until_signalled(search(steps, probes.make, teller.tell)))
    except (asyncio.CancelledError, KeyboardInterrupt):
        click.echo("tapeproxy: stopped", err=True)
        return STOPPED
    if isinstance(found, Unsound):
        raise _unsound_commit(found, settings, teller)
    if as_json:
        echo(json.dumps(_commit_document(found, probes, teller), indent=2))
    else:
        for line in _commit_lines(found, probes):
            echo(line)
    return 0


def _unsound_commit(found: "Unsound", settings: "CommitSettings", teller: "Teller") -> UsageError:
    commit = settings.commits[found.place]
    is_good_end = found.place == 0
    called = f"{commit.short} ({commit.subject})"
    if found.verdict == "skip":
        return UsageError(f"the {'good' if is_good_end else 'bad'} commit {called} cannot be tested: {teller.why}")
    if is_good_end:
        fix = "is the tape one of a good run? With a bad run's tape, say with --check what good is"
        return UsageError(f"the check fails at the good commit {called} already", fix=f"{teller.why}\n  {fix}".strip())
    return UsageError(f"the check does not fail at the bad commit {called}")


def _commit_lines(found: "Found", probes: "CommitProbes") -> list[str]:
    commits = probes.settings.commits
    bad, good = commits[found.bad], commits[found.good]
    screen = screen_of(sys.stdout)
    lines = [f"first bad commit: {screen.paint(bad.id, 'red', bold=True)}"]
    lines += [f"  author   {printable(bad.author)}, {printable(bad.date)}", f"  subject  {printable(bad.subject)}"]
    if evidence := probes.evidence.get(found.bad):
        lines.append(block(evidence, "  "))
    lines.append(f"last good commit: {good.short} {printable(good.subject)}")
    for commit in commits[found.good + 1 : found.bad]:
        lines.append(f"could not be tested, and may be the one: {commit.short} {printable(commit.subject)}")
    if probes.settings.repository.is_merge(bad):
        merged = f"--commits {bad.short}^1..{bad.short}^2"
        lines.append(f"that is a merge; what it brought in can be searched: {merged}")
    lines.append(f"{count(found.probed, 'probe')}")
    return lines


def _commit_document(found: "Found", probes: "CommitProbes", teller: "Teller") -> dict[str, Any]:
    commits = probes.settings.commits

    def document(place: int) -> dict[str, str]:
        commit = commits[place]
        return {"commit": commit.id, "author": commit.author, "date": commit.date, "subject": commit.subject}

    return {
        "bad": document(found.bad) | {"evidence": probes.evidence.get(found.bad, "")},
        "good": document(found.good),
        "skipped": [document(place) for place in range(found.good + 1, found.bad)],
        "probes": teller.to_json(),
    }


class Teller:
    """Says how each probe went, in a line on standard error."""

    def __init__(self, name: Any, noun: str) -> None:
        self.why = ""
        self._name = name
        self._noun = noun
        self._told: list[Told] = []
        self._places: list[int] = []

    def tell(self, told: "Told") -> None:
        """Print one."""
        self._told.append(told)
        self.why = told.judged.why
        place = told.probe.place
        if place not in self._places:
            self._places.append(place)
        colour = {"good": "green", "bad": "red"}.get(told.judged.verdict)
        verdict = screen_of(sys.stderr).paint(told.judged.verdict, colour)
        again = f", attempt {told.probe.attempt}" if told.probe.attempt > 1 else ""
        why = f": {told.judged.why}" if told.judged.why else ""
        left = count(told.probe.left, self._noun)
        click.echo(
            f"tapeproxy: probe {len(self._places)}{again} (of {left}): {printable(self._name(place))}: {verdict}"
            f"{printable(why)}, {duration(told.took_ns)}",
            err=True,
        )

    def to_json(self) -> list[dict[str, Any]]:
        """All of them."""
        return [
            {
                "place": told.probe.place,
                "attempt": told.probe.attempt,
                "verdict": told.judged.verdict,
                "why": told.judged.why,
                "took_ns": told.took_ns,
            }
            for told in self._told
        ]
