"""What a run's environment was, for code in a replay of it: facts of the tape, and what stands in for secrets."""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tapeproxy.proxy.tapedrun import placeholders
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.secretvars import secret_names
from tapeproxy.tapes.tokens import placeholder


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """`started_at`: ISO 8601, in UTC. `tz`, `lang`: TZ, and LC_ALL or LANG; None: they were not set.

    `secrets`: the variables that held one. `placeholders`: those of them that hold a placeholder now.
    """

    started_at: str
    cwd: str
    python: str
    platform: str
    tz: str | None
    lang: str | None
    secrets: tuple[str, ...]
    placeholders: tuple[str, ...] = ()

    @classmethod
    def of(cls, tape: Tape) -> Self:
        """That of a recorded run."""
        head = tape.head
        held = tuple(name for name in placeholders(tape) if os.environ.get(name) == placeholder(name))
        facts = head.started_at, head.cwd or "", head.python or "", head.platform or ""
        return cls(*facts, head.tz, head.lang, tuple(head.secrets), held)

    @classmethod
    def here(cls, started_at: str) -> Self:
        """This one, for a run that is recorded."""
        machine = platform.python_version(), f"{sys.platform}-{platform.machine()}"
        lang = os.environ.get("LC_ALL") or os.environ.get("LANG")
        return cls(started_at, str(Path.cwd()), *machine, os.environ.get("TZ"), lang, tuple(secret_names(os.environ)))
