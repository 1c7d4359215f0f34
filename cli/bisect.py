"""`tapeproxy bisect`: find the event, or the commit, at which a run turns bad."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.bisected import (
    Teller,
    commit_document,
    commit_lines,
    step_document,
    step_lines,
    unsound_commit,
    unsound_step,
)
from tapeproxy.cli.checkoptions import agent_options, check_options
from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import count, echo
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.cli.worldoptions import WorldOptions, world_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.bisecting import Make
    from tapeproxy.proxy.checks import Check
    from tapeproxy.proxy.commitprobes import CommitSettings
    from tapeproxy.tapes.bisecting import Found, Search, Unsound

STOPPED = 130


@click.command(cls=AgentCommand, context_settings=HELP)
@click.argument("tape", required=False)
@click.option("--commits", metavar="GOOD..BAD", help="Bisect the code: replay the tape at each commit, offline.")
@click.option("--setup", metavar="CMD", help="Builds a commit, for the shell; where it fails, the commit is skipped.")
@check_options
@click.option(
    "-r", "--repeat", default=1, show_default=True, type=click.IntRange(1), help="Probe so often before it is good."
)
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="Send what goes to HOST to URL instead.")
@world_options
@click.option("--keyless", multiple=True, metavar="NAME", help="A secret variable that no live call needs.")
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the tapes and outputs of the probes."
)
@agent_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@unlock_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    tape: str | None,
    commits: str | None,
    setup: str | None,
    judge: "Check | None",
    repeat: int,
    as_json: bool,
    **how: Any,
) -> int:
    """Find the event or the commit at which a run turns bad.

    \b
    tapeproxy bisect bad.tape.jsonl.gz                      which answer is the culprit?
    tapeproxy bisect bad.tape.jsonl.gz --check 'grep -q "total: 42" "$TAPEPROXY_STDOUT"'
    tapeproxy bisect good.tape.jsonl.gz --commits v1.2..HEAD --setup 'make build' -- python agent.py

    By event, which is a request or a call of a tool: the agent is run with the first k events of the tape (in
    causal order) answered from it and all others made anew, live, as `fork` does; found is the event with whose
    taped answer it fails and without which it does not. With none it has to be good, with all it has to fail: that
    is tried first. Of n events at most log2(n) + 2 are tried. It makes real calls, and needs the real keys.
    Bisecting supposes that a run which fails with k events fails with more, too. Where it fails only now and then,
    -r 5 probes five times before an event counts as good; that a good run never fails is supposed even so.

    By commit (--commits): the tape, of a good run, is replayed at commits between the two, offline, by first
    parents, each in a git worktree in a temporary folder; your checkout, index and HEAD are not touched. The
    command is run in the folder of the worktree that you are in here. Checks and predicates judge the tape of that
    replay. Where --setup fails, the replay does not begin or a check exits with 125, the commit is skipped.

    What a run is judged by: the exit code (0 is good, 125 can't be tested, by commit a violation is bad); a --check,
    which is told TAPEPROXY_TAPE, TAPEPROXY_STDOUT, TAPEPROXY_STDERR (files) and TAPEPROXY_EXIT, and exits as it would
    for `git bisect run`; or a --predicate on the tape, true of a good run: '$.final_state.total=42',
    '$.answer.text~refund', '$.requests[3].body.model!=gpt-4o', '$.exit=0'. See docs/BISECT.md.

    \b
    Exit codes: 0 found
                2 nothing can be found: the ends are not good and bad, or a check can't judge
                130 stopped

    --json prints bad, good and skipped, and probes (place, attempt, verdict, why, took_ns). By event, bad is event,
    lane, request and status of the culprit, or event, lane, call and gave, and good and skipped are events, a
    number or LANE#N for a call, null for none; by commit, each is commit, author, date, subject, and bad has
    evidence, what the replay said of it.
    """
    path, argv = choose_tape(tape), agent_argv(ctx)
    if commits is None:
        _refuse(setup is not None, "--setup is for --commits")
        _refuse(bool(how["allow"]), "--allow is for --commits")
        return _bisect_steps(path, argv, judge, repeat, as_json=as_json, **how)
    live = any(how[name] for name in ("maps", "keyless", "keep")) or how["world"].given
    _refuse(live, "--commits makes no live calls and keeps no tapes")
    if how["unlocking"].named:
        what = f"{how['unlocking'].named} opens the tape once, and each commit's replay is a command that opens it anew"
        raise UsageError(what, fix="set TAPEPROXY_PASSPHRASE, TAPEPROXY_PASSPHRASE_FILE or TAPEPROXY_KEY_FILE")
    words = [] if how["timeout"] is None else ["--timeout", str(how["timeout"])]
    words += ["--guard", how["guard"], *(word for place in how["allow"] for word in ("--allow", place))]
    settings = _commit_settings(path, commits, argv, words, setup or "", judge)
    return _bisect_commits(settings, repeat, as_json=as_json)


def _refuse(refused: bool, why: str) -> None:
    if refused:
        raise UsageError(why, fix="see: tapeproxy bisect --help")


def _bisect_steps(
    path: Path, argv: tuple[str, ...], judge: "Check | None", repeat: int, *, as_json: bool, **how: Any
) -> int:
    from tapeproxy.addons.hostmap import parse_map
    from tapeproxy.proxy.checks import by_exit
    from tapeproxy.proxy.forked import ForkSettings, WayOut
    from tapeproxy.proxy.guard import establish
    from tapeproxy.proxy.hybrid import open_parent
    from tapeproxy.proxy.stepprobes import StepProbes, StepSettings
    from tapeproxy.tapes.bisecting import Unsound, search_turn
    from tapeproxy.tapes.forkplan import ForkPlan

    keep: Path | None = how["keep"]
    world: WorldOptions = how["world"]
    unlocking: Unlocking = how["unlocking"]
    with tempfile.TemporaryDirectory(prefix="tapeproxy-bisect-") as made:
        folder = keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        fork = ForkSettings(
            parent=open_parent(path, unlocking.ask),
            plan=ForkPlan(),
            out=folder,
            environment=dict(os.environ),
            cwd=str(Path.cwd()),
            argv=argv,
            force=True,
            hosts=parse_map(how["maps"]),
            upstream_ca=world.upstream_ca,
            way=WayOut(world.upstream_proxy, world.client_certs, no_tape=world.no_tape),
            guard=establish(how["guard"], live=True),
            keyless=frozenset(how["keyless"]),
            max_violations=1,
            timeout=how["timeout"],
        )
        probes = StepProbes(StepSettings(fork=fork, folder=folder, check=judge or by_exit))
        if not probes.events:
            raise UsageError("there is no event on the tape to bisect", where=str(path))
        teller = Teller(lambda place: f"first {count(place, 'event')} taped", "event")
        steps = search_turn(len(probes.events), repeats=repeat)
        found = _searched(steps, probes.make, teller)
    if found is None:
        return STOPPED
    if isinstance(found, Unsound):
        raise unsound_step(found, teller)
    document = step_document(found, probes, teller)
    if as_json:
        echo(json.dumps(document, indent=2))
    else:
        for line in step_lines(found, document, path):
            echo(line)
    return 0


def _searched(steps: "Search", make: "Make", teller: "Teller") -> "Found | Unsound | None":
    """What came of the search; None: somebody stopped it."""
    from tapeproxy.proxy.bisecting import search, until_signalled

    try:
        return asyncio.run(until_signalled(search(steps, make, teller.tell)))
    except (asyncio.CancelledError, KeyboardInterrupt):
        click.echo("tapeproxy: stopped", err=True)
        return None


def _commit_settings(
    tape: Path, commits: str, argv: tuple[str, ...], words: Sequence[str], setup: str, judge: "Check | None"
) -> "CommitSettings":
    from tapeproxy.proxy.checks import by_exit
    from tapeproxy.proxy.commitprobes import CommitSettings
    from tapeproxy.proxy.repository import Repository
    from tapeproxy.proxy.tapedrun import taped_argv
    from tapeproxy.proxy.tapefile import is_locked, load

    good, dots, bad = commits.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise UsageError(f"--commits {commits!r} is not GOOD..BAD", fix="as in: --commits v1.2..HEAD")
    loaded = load(tape)[0]  # what is wrong with the tape is no commit's fault
    if judge is not None and is_locked(tape):
        what = "the tape is encrypted, and those of its replays, which a check or predicate judges, would not be"
        raise UsageError(what, where=str(tape), fix="judge by the exit code, or decrypt it first")
    repository = Repository(Path.cwd())
    # A check may look at what comes after the first violation; an exit code is decided by it.
    most = ["--max-violations", "1"] if judge is None else []
    where = tape.absolute()

    def replay(report: Path, own: Path, agent: tuple[str, ...]) -> list[str]:
        # -P: what lies in the commit's folder is not ours to import.
        ours = [sys.executable, "-P", "-m", "tapeproxy.cli.main", "replay", str(where), "--report", str(report)]
        judged = [] if judge is None else ["--own-tape", str(own)]
        return [*ours, *words, *most, *judged, "--", *agent]

    return CommitSettings(
        repository=repository,
        commits=repository.commits(good, bad),
        argv=argv or taped_argv(loaded, tape),
        replay=replay,
        environment=dict(os.environ),
        setup=setup,
        check=judge or by_exit,
    )


def _bisect_commits(settings: "CommitSettings", repeat: int, *, as_json: bool) -> int:
    from tapeproxy.proxy.commitprobes import CommitProbes
    from tapeproxy.tapes.bisecting import Unsound, search_turn

    commits = settings.commits
    if len(commits) < 2:
        raise UsageError("good and bad are the same commit, so there is nothing between them")
    probes = CommitProbes(settings)
    teller = Teller(lambda place: f"{commits[place].short} {commits[place].subject}", "commit")
    steps = search_turn(len(commits) - 1, repeats=repeat, ends="if-needed")
    found = _searched(steps, probes.make, teller)
    if found is None:
        return STOPPED
    if isinstance(found, Unsound):
        raise unsound_commit(found, settings, teller)
    if as_json:
        echo(json.dumps(commit_document(found, probes, teller), indent=2))
    else:
        for line in commit_lines(found, probes):
            echo(line)
    return 0
