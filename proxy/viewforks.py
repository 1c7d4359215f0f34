"""Forks that the page orders: each is a `tapeproxy fork` of its own, so that it can be stopped and harms nobody."""

import itertools
import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.proxy.viewing import TapeFolder
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Json
from tapeproxy.web.library import ForkOrder

_OPTIONS = frozenset({"--at", "--set", "--append", "--delete", "--text", "--status", "--model", "--request-set"})
"""What the page may ask for: edits. No file, no command, no address."""
_OUTPUT = 20_000
_PLAN_SECONDS = 60


@dataclass(slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    child: Path
    output: IO[bytes]


class ForkingFolder(TapeFolder):
    """A folder of tapes of which the page may order forks; the children are written beside their parents."""

    _forks: dict[int, _Running]

    def __init__(self, place: Path, ask: Ask = ask_environment, extra: tuple[str, ...] = ()) -> None:
        super().__init__(place, ask)
        self._forks = {}
        self._numbers = itertools.count(1)
        self._extra = extra

    def plan(self, name: str, order: ForkOrder) -> Json:
        words = [*_command(self.paths()[name], order), "--dry-run", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PLAN_SECONDS, check=False)
        if done.returncode != 0:
            raise UsageError(done.stderr.strip().removeprefix("tapeproxy: ") or f"exit code {done.returncode}")
        found: Json = json.loads(done.stdout)
        return found

    def fork(self, name: str, order: ForkOrder) -> Json:
        parent = self.paths()[name]
        number = next(self._numbers)
        child = _free(parent)
        output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the next fork's state is asked, at the latest with us
        words = [*_command(parent, order), "-o", str(child), *self._extra]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self._forks[number] = _Running(process, child, output)
        return {"fork": number, "child": child.name}

    def fork_state(self, number: int) -> Json:
        one = self._forks[number]
        code = one.process.poll()
        size = one.output.seek(0, 2)
        one.output.seek(max(0, size - _OUTPUT))
        text = one.output.read().decode(errors="replace")
        return {
            "running": code is None,
            "exit_code": code,
            "output": text,
            "child": one.child.name,
            "begun": one.child.exists(),
        }

    def stop_fork(self, number: int) -> None:
        process = self._forks[number].process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Interrupt what runs, and wait for its tapes to be sealed."""
        for number in self._forks:
            self.stop_fork(number)
        for one in self._forks.values():
            one.process.wait()
            one.output.close()


def _command(parent: Path, order: ForkOrder) -> list[str]:
    words = [sys.executable, "-m", "tapeproxy.cli.main", "fork", str(parent), "--rerun", order.rerun]
    for option, value in order.options:
        if option not in _OPTIONS:
            raise UsageError(f"the page may not use {option!r}", fix=f"it may use {', '.join(sorted(_OPTIONS))}")
        # One word, so that a value that begins with a dash is no option.
        words.append(f"{option}={value}")
    for name in order.keyless:
        words.append(f"--keyless={name}")
    return words


def _free(parent: Path) -> Path:
    stem = parent.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".tape")
    names = (parent.with_name(f"{stem}-fork{number}.tape.jsonl.gz") for number in itertools.count(1))
    return next(path for path in names if not path.exists())
