"""Forks that the page orders: each is a `tapeproxy fork` of its own, so that it can be stopped and harms nobody."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.proxy.viewing import TapeFolder
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Json
from tapeproxy.web.library import ForkOrder, NotThereError

OPTIONS: Final = frozenset(
    {"--at", "--set", "--delete", "--text", "--status", "--header"}
    | {"--request-set", "--request-delete", "--system", "--model", "--body"}
)
"""What the page may ask for: edits of what is said. No file, no command, no address, no environment."""
_TEXT: Final = re.compile(r"(\d{1,9}::)?@")
"""How a body begins that stands in the option itself: any other one is the name of a file."""
_OUTPUT = 20_000
_PLAN_SECONDS = 60
_MOST = 8
"""Forks that run at a time."""
_PATIENCE = 15
"""Seconds in which an interrupted fork has to seal its tape."""


@dataclass(slots=True)
class _Fork:
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    child: Path
    parent: str
    at: int | None
    """The exchange at which it was ordered."""
    said: str = ""
    stopping: bool = False

    def told(self) -> str:
        """The end of what it printed. The file is closed once it prints no more."""
        ended = self.process.poll() is not None
        if self.output is not None:
            # The fork writes at the place where this file stands, so that is left alone.
            size = os.fstat(self.output.fileno()).st_size
            said = os.pread(self.output.fileno(), _OUTPUT, max(0, size - _OUTPUT))
            self.said = said.decode(errors="replace")
            if ended:
                self.output.close()
                self.output = None
        return self.said


class ForkingFolder(TapeFolder):
    """A folder of tapes of which the page may order forks; the children are written beside their parents."""

    def __init__(self, place: Path, ask: Ask = ask_environment, extra: tuple[str, ...] = ()) -> None:
        super().__init__(place, ask)
        self._forks: dict[int, _Fork] = {}
        self._forking = threading.Lock()
        self._extra = extra

    def paths(self) -> dict[str, Path]:
        # Where one tape alone is shown, its children are too.
        children = (fork.child for fork in [*self._forks.values()])
        return super().paths() | {child.name: child for child in children if child.is_file()}

    def plan(self, name: str, order: ForkOrder) -> Json:
        words = [*_command(self.path(name), order), "--dry-run", "--json"]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PLAN_SECONDS,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"the dry run took more than {_PLAN_SECONDS} s", fix="tapeproxy fork --dry-run") from None
        except (OSError, ValueError) as error:
            raise _not_started(error) from None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().removeprefix("tapeproxy: ")
            raise UsageError(said or f"exit code {done.returncode}")
        found: Json = json.loads(done.stdout)
        return found

    def fork(self, name: str, order: ForkOrder) -> Json:
        parent = self.path(name)
        with self._forking:
            for fork in self._forks.values():
                fork.told()
            if sum(fork.output is not None for fork in self._forks.values()) >= _MOST:
                raise UsageError(f"{_MOST} forks run already", fix="stop one of them, or wait")
            child = self._free(parent)
            words = [*_command(parent, order), "-o", str(child), *self._extra]
            number = len(self._forks) + 1
            self._forks[number] = _Fork(*_start(words), child, name, _at(order))
        return {"fork": number, "child": child.name}

    def forks(self) -> list[Json]:
        return [
            {"fork": number, "parent": fork.parent, "at": fork.at, "child": fork.child.name}
            | {"running": (code := fork.process.poll()) is None, "exit_code": code, "begun": _has_content(fork.child)}
            for number, fork in [*self._forks.items()]
        ]

    def fork_state(self, number: int) -> Json:
        fork = self._fork(number)
        code = fork.process.poll()  # before its output is read, so that at the end that is all of it
        with self._forking:
            said = fork.told()
        return {
            "running": code is None,
            "exit_code": code,
            "output": said,
            "child": fork.child.name,
            "begun": _has_content(fork.child),
        }

    def stop_fork(self, number: int) -> None:
        fork = self._fork(number)
        if fork.process.poll() is None:
            fork.stopping = True
            fork.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Interrupt what runs, and wait for its tapes to be sealed; what doesn't end is ended."""
        for number, fork in self._forks.items():
            if not fork.stopping:  # a second interrupt would cut its end short
                self.stop_fork(number)
        for fork in self._forks.values():
            for end in (fork.process.terminate, fork.process.kill):
                try:
                    fork.process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    end()
            fork.process.wait()
            fork.told()

    def _fork(self, number: int) -> _Fork:
        try:
            return self._forks[number]
        except KeyError:
            raise NotThereError(str(number)) from None

    def _free(self, parent: Path) -> Path:
        """A name beside the parent that nobody has, or will have once its fork has begun to write."""
        taken = {fork.child for fork in self._forks.values()}
        stem = parent.name.removesuffix(".enc").removesuffix(".gz").removesuffix(".jsonl").removesuffix(".tape")
        names = (parent.with_name(f"{stem}-fork{number}.tape.jsonl.gz") for number in itertools.count(1))
        return next(path for path in names if path not in taken and not path.exists())


def _at(order: ForkOrder) -> int | None:
    at = dict(order.options).get("--at", "")
    return int(at) if at.isascii() and at.isdecimal() and len(at) < 10 else None


def _start(words: list[str]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The process, and the file into which it prints."""
    output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `told`
    try:
        # In a session of its own: Ctrl-C at the terminal is ours to pass on, and nobody is asked for a passphrase.
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    except (OSError, ValueError) as error:
        output.close()
        raise _not_started(error) from None
    return process, output


def _not_started(error: OSError | ValueError) -> UsageError:
    why = error.strerror if isinstance(error, OSError) else str(error)
    return UsageError(f"the fork cannot be started: {why}", fix="with a value as long as that, `tapeproxy fork` itself")


def _command(parent: Path, order: ForkOrder) -> list[str]:
    words = [sys.executable, "-m", "tapeproxy.cli.main", "fork", str(parent), f"--rerun={order.rerun}"]
    for option, value in order.options:
        if option not in OPTIONS:
            raise UsageError(f"the page may not use {option!r}", fix=f"it may use {', '.join(sorted(OPTIONS))}")
        if option == "--body" and not _TEXT.match(value):
            raise UsageError("the page may not use a file for a body", fix="a text stands behind @")
        # One word, so that a value that begins with a dash is no option.
        words.append(f"{option}={value}")
    for name in order.keyless:
        words.append(f"--keyless={name}")
    return words


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
