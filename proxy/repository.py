"""A git repository whose commits are looked at in worktrees of their own. Knows git; leaves the user's checkout alone.

Nothing here writes to the user's working tree, index or HEAD. A worktree is entered in `.git/worktrees` while it is
there and is removed with its folder. Hooks are not run.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tapeproxy.tapes.errors import UsageError

_QUIETLY: Final = (
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "gc.auto=0",
    "-c",
    "log.showSignature=false",
)
_FORM: Final = "%H%x00%an%x00%ad%x00%s"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its full hash, who made it and when (RFC 3339), and the first line of its message."""

    id: str
    author: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        return self.id[:12]


@dataclass(frozen=True, slots=True)
class Tree:
    """A commit checked out: the `top` of the repository there, and the folder in it that stands for the user's."""

    commit: Commit
    top: Path
    folder: Path


class Repository:
    """The repository that folder `here` is in. Raises UsageError without git, or outside of a repository."""

    def __init__(self, here: Path) -> None:
        self._here = here
        # Whoever runs us from a hook has set variables that mean another repository's index.
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        if shutil.which("git") is None:
            raise UsageError("--commits needs git, and there is none on the PATH")
        self.top = Path(self._git("rev-parse", "--show-toplevel"))
        self._prefix = self._git("rev-parse", "--show-prefix")

    def commits(self, good: str, bad: str) -> list[Commit]:
        """The good commit, and those after it up to the bad one, oldest first, by first parents.

        Raises UsageError where they don't follow one another.
        """
        first, last = self._commit(good), self._commit(bad)
        if self._code("merge-base", "--is-ancestor", first.id, last.id):
            fix = f"they are given as GOOD..BAD; did you mean {bad}..{good}?"
            raise UsageError(f"the good commit {good} is no ancestor of the bad one, {bad}", fix=fix)
        text = self._git(
            "log", "--first-parent", "--reverse", f"--format={_FORM}", "--date=iso-strict", f"{first.id}..{last.id}"
        )
        return [first, *map(_read, text.split("\n"))] if text else [first]

    def is_merge(self, commit: Commit) -> bool:
        """Whether a commit has several parents."""
        return len(self._git("rev-list", "--parents", "-n1", commit.id).split()) > 2

    @contextlib.contextmanager
    def checked_out(self, commit: Commit) -> Iterator[Tree]:
        """A commit in a worktree of its own, which is gone when the block is left, however that is."""
        with tempfile.TemporaryDirectory(prefix="tapeproxy-bisect-", ignore_cleanup_errors=True) as made:
            top = Path(made).resolve() / self.top.name
            try:
                self._git("worktree", "add", "--detach", "--quiet", str(top), commit.id)
                yield Tree(commit, top, top / self._prefix)
            finally:
                self._code("worktree", "remove", "--force", "--force", str(top))

    def _commit(self, name: str) -> Commit:
        if name.startswith("-"):
            raise UsageError(f"{name!r} is no commit")
        id = self._git(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{name}^{{commit}}",
            wanted=f"{name!r} is no commit here",
        )
        return _read(self._git("log", "-1", f"--format={_FORM}", "--date=iso-strict", id))

    def _git(self, *words: str, wanted: str = "") -> str:
        """What git prints. Raises UsageError with its own words, or with what was `wanted`."""
        done = self._run(words)
        if done.returncode:
            said = done.stderr.strip().removeprefix("fatal: ") or f"git {words[0]} failed"
            raise UsageError(wanted or said, where=str(self._here))
        return done.stdout.removesuffix("\n")

    def _code(self, *words: str) -> int:
        return self._run(words).returncode

    def _run(self, words: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["git", *_QUIETLY, *words],
            cwd=self._here,
            env=self._environment | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )


def _read(line: str) -> Commit:
    id, author, date, subject = line.split("\0")
    return Commit(id, author, date, subject)
