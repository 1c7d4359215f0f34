"""Probes of commits: the tape is replayed by a commit's code, in a worktree of its own. Offline, but for the build.

Each replay is a command of its own, because what guards it from the network may be for good, and a build needs that.
"""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from tapeproxy.proxy.beside import last_words, run_beside, shell
from tapeproxy.proxy.bisecting import Judged
from tapeproxy.proxy.checks import Check, Ran, by_exit
from tapeproxy.proxy.repository import Commit, Repository, Tree
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.bisecting import Probe

_SAYS: Final = "tapeproxy: "
_FINDINGS: Final = (f"{_SAYS}violation: ", f"{_SAYS}drift: ")
_MOST: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """What to probe. `commits`: the good one first. `replay` gives the command that replays the tape and writes its
    report to a path, and its own tape to another one where a check needs that, for an agent's command line `argv`.
    `setup`: builds a commit, for the shell; empty: nothing does.
    """

    repository: Repository
    commits: Sequence[Commit]
    argv: tuple[str, ...]
    replay: Callable[[Path, Path, tuple[str, ...]], Sequence[str]]
    environment: Mapping[str, str]
    setup: str = ""
    check: Check = by_exit


@dataclass
class CommitProbes:
    """Makes them. `evidence`: of each place whose last verdict was bad, what the replay said first."""

    settings: CommitSettings
    evidence: dict[int, str] = field(default_factory=dict[int, str])

    async def make(self, probe: Probe) -> Judged:
        """Check out, build, replay, judge. Raises UsageError where git fails, and CheckError."""
        commit = self.settings.commits[probe.place]
        with self.settings.repository.checked_out(commit) as tree, tempfile.TemporaryDirectory() as made:
            judged, said = await self._judge(tree, Path(made))
        if judged.verdict == "bad":
            self.evidence[probe.place] = said
        return judged

    async def _judge(self, tree: Tree, made: Path) -> tuple[Judged, str]:
        settings = self.settings
        if not tree.folder.is_dir():
            return Judged("skip", "the folder is not there"), ""
        environment = dict(settings.environment) | {"TAPEPROXY_COMMIT": tree.commit.id, "PWD": str(tree.folder)}
        if settings.setup:
            with tempfile.TemporaryFile() as words:
                code = await run_beside(shell(settings.setup), environment, cwd=tree.folder, output=words.fileno())
                if code:
                    return Judged("skip", f"the setup failed: {last_words(words) or f'exit code {code}'}"), ""
        report, own, out, err = (made / name for name in ("report", "own.tape.jsonl.gz", "stdout", "stderr"))
        argv = settings.replay(report, own, tuple(self._there(word, tree) for word in settings.argv))
        with ExitStack() as files:
            outputs = [files.enter_context(path.open("w+b")) for path in (out, err)]
            code = await run_beside(
                argv, environment, cwd=tree.folder, output=outputs[0].fileno(), errors=outputs[1].fileno()
            )
            if not report.exists():
                # It did not come to a replay, for a reason that is the commit's: the tape was read before.
                return Judged("skip", last_words(outputs[1]) or f"exit code {code}"), ""
        ran = Ran(orjson.loads(report.read_bytes())["exit_code"], out, err, lambda: load(own)[0], lambda: own)
        return Judged(await settings.check(ran)), finding(err.read_bytes()[:_MOST].decode(errors="replace"))

    def _there(self, word: str, tree: Tree) -> str:
        """A file of the user's checkout, named by its whole path, is meant as the commit has it."""
        top = str(self.settings.repository.top)
        if not word.startswith(top + os.sep):
            return word
        there = tree.top / word[len(top) + 1 :]
        return str(there) if there.exists() else word


def finding(stderr: str) -> str:
    """The first violation or drift that a replay told of, whole; else the last line that is not ours."""
    lines = stderr.split("\n")
    for at, line in enumerate(lines):
        if line.startswith(_FINDINGS):
            rest = lines[at + 1 :]
            more = next((n for n, one in enumerate(rest) if not one.startswith("  ")), len(rest))
            return "\n".join((line.removeprefix(_SAYS), *rest[:more]))
    said = [line for line in lines if line.strip() and not line.startswith(_SAYS)]
    return said[-1].strip() if said else ""
