"""Recorders that are run one after the other and killed, each with an agent that logs what it has received."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import killing
from clirun import KEYS, Cli

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.repairing import beside, repair
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape


@dataclass
class Recorders:
    """Forks recorders from one process (tests/killing.py). `lines`: what the last one's agent has logged."""

    process: "subprocess.Popen[str]"
    cli: Cli
    lines: list[str] = field(default_factory=list)

    def run(
        self, tape: Path, argv: list[str], *, point: str | None = None, at: int = 1, after: int | None = None
    ) -> int:
        """Record an agent until it and its recorder are gone; returns the recorder's exit status.

        The agent logs lines to the descriptor `killing.HOLD`. The recorder dies the `at`-th time at `point`, or once
        `after` lines were logged.
        """
        hold = tape.with_suffix(".fifo")
        os.mkfifo(hold)
        reader = os.open(hold, os.O_RDONLY | os.O_NONBLOCK)
        order = {"tape": str(tape), "argv": argv, "cwd": str(tape.parent), "hold": str(hold), "shim": False}
        order |= {"environment": self.cli.environment(keys=True), "point": point, "at": at}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        os.set_blocking(reader, True)
        with os.fdopen(reader, encoding="ascii") as log:
            self.lines = list(self._watch(log, pid, after))
        return int(self.process.stdout.readline())

    def _watch(self, log: IO[str], pid: int, after: int | None) -> Iterator[str]:
        for number, line in enumerate(log, 1):
            if number == after:
                os.kill(pid, signal.SIGKILL)
            yield line


@contextlib.contextmanager
def recorders(folder: Path) -> Iterator[Recorders]:
    """Recorders with their files in `folder`."""
    cli = Cli(folder, folder / "home")
    ca = CertificateAuthority.open(cli.home)
    assert ca.certificate.exists()
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    program = [sys.executable, str(Path(killing.__file__))]
    with subprocess.Popen(program, env=cli.environment(), **options) as process:
        yield Recorders(process, cli)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def check(lost: Callable[[Tape], list[str]], tape: Path) -> Tape:
    """The tape can be read and has all that was received (`lost` is empty); so has what `repair` makes of it."""
    found, ending = load(tape)
    assert lost(found) == []
    if not ending.sealed:
        out = beside(tape)
        repair(tape, out, KEYS)
        closed, whole = load(out)
        assert whole.canonical
        assert lost(closed) == []
    return found
