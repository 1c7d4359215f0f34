"""Was this run good? By its exit code, by a command, or by a predicate on its tape. Knows processes, not what for.

As with `git bisect run`: 0 is good, 125 cannot be tested, any other code is bad; but a check that cannot be run (126,
127) or is killed ends the search.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tapeproxy.proxy.beside import last_words, run_beside, shell
from tapeproxy.tapes.bisecting import Verdict
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.predicates import Predicate

UNTESTABLE: Final = 125
_BROKEN: Final = 126


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that is over. `tape` reads its tape, `tape_path` says where that is, and may have to write it first."""

    exit_code: int
    stdout: Path
    stderr: Path
    tape: Callable[[], Tape]
    tape_path: Callable[[], Path]


class Check(Protocol):
    """Judges runs."""

    async def __call__(self, ran: Ran) -> Verdict:
        """Raises CheckError where it can't."""
        ...


class CheckError(UsageError):
    """The check itself failed, so that it says nothing about the run."""


async def by_exit(ran: Ran) -> Verdict:
    """By the agent's own exit code."""
    return verdict_of(ran.exit_code)


def verdict_of(code: int) -> Verdict:
    """What an exit code says."""
    return "good" if code == 0 else "skip" if code == UNTESTABLE else "bad"


@dataclass(frozen=True, slots=True)
class ByPredicate:
    """By what is on the tape: good where the predicate holds."""

    predicate: Predicate

    async def __call__(self, ran: Ran) -> Verdict:
        return "good" if self.predicate.holds(ran.tape()) else "bad"


@dataclass(frozen=True, slots=True)
class ByCommand:
    """By a command for the shell. It is given TAPEPROXY_TAPE, _STDOUT, _STDERR (files) and _EXIT (the agent's code)."""

    command: str
    environment: Mapping[str, str]

    async def __call__(self, ran: Ran) -> Verdict:
        environment = {
            **self.environment,
            "TAPEPROXY_TAPE": str(ran.tape_path()),
            "TAPEPROXY_STDOUT": str(ran.stdout),
            "TAPEPROXY_STDERR": str(ran.stderr),
            "TAPEPROXY_EXIT": str(ran.exit_code),
        }
        with tempfile.TemporaryFile() as words:
            code = await run_beside(shell(self.command), environment, output=words.fileno())
            said = last_words(words)
        if not 0 <= code < _BROKEN:
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise CheckError(f"the check could not judge: {how}", where=self.command, fix=said)
        return verdict_of(code)
