"""Runs the processes that are measured: commands that tell their outcome, and servers that end with their `with`."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tapeproxy.proxy.ca import CertificateAuthority

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
BEGAN, ENDED = "it begins", "it has ended"
_PATIENCE = 30.0
"""Seconds for one command; a row has about twice as many."""
_STARTING = 40.0
"""Seconds for a server to say that it listens."""
_ENDING = 10.0


class MissingError(Exception):
    """A peer is not installed here."""


class FailedError(Exception):
    """A command or a server did not do what it was run for; says why."""


def tapeproxy() -> list[str]:
    """Our command."""
    return [str(BIN / "tapeproxy")]


def python(module: str) -> list[str]:
    """A module of this folder as a command."""
    return [sys.executable, "-m", f"bench.{module}"]


def home(folder: Path) -> Path:
    """The home of our certificate authority, made if need be."""
    return CertificateAuthority.open(folder / "home").directory


def environment(folder: Path) -> dict[str, str]:
    """The environment of our command: a user's, with a home of its own and no proxy."""
    ours = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return ours | {"TAPEPROXY_HOME": str(home(folder)), "OPENAI_API_KEY": "sk-bench-0123456789abcdef"}


def ask(command: Sequence[str], job: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Any:
    """Run a command that reads a job and prints its outcome, both JSON. Raises FailedError."""
    said = run(command, env, json.dumps(job))
    try:
        return json.loads(said)
    except ValueError:
        raise FailedError(f"{command[0]} printed {said[:200]!r}") from None


def run(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    given: str = "",
    folder: Path = ROOT,
    patience: float = _PATIENCE,
) -> str:
    """Run a command to its end; what it printed. Raises FailedError, also when it takes too long."""
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=patience
        )
    except subprocess.TimeoutExpired:
        raise FailedError(f"took longer than {patience:.0f} s") from None
    except OSError as error:
        raise FailedError(str(error)) from None
    if done.returncode != 0:
        raise FailedError(_last_words(done.stderr or done.stdout) or f"exit code {done.returncode}")
    return done.stdout


def stopwatch(command: Sequence[str], env: Mapping[str, str], folder: Path) -> float:
    """Run a command in `folder`; seconds between its lines BEGAN and ENDED, as seen from here. Raises FailedError.

    From here, because recorders make a process's own clock say what it said before.
    """
    times: dict[str, float] = {}
    said = ""
    with running(command, env, folder) as process:
        assert process.stdout is not None
        alarm = threading.Timer(_PATIENCE, process.kill)
        alarm.start()
        try:
            for line in process.stdout:
                times.setdefault(line.strip(), time.perf_counter())
                said = (said + line)[-2000:]
            code = process.wait()
        finally:
            alarm.cancel()
    if code == -signal.SIGKILL:
        raise FailedError(f"took longer than {_PATIENCE:.0f} s")
    if code != 0 or BEGAN not in times or ENDED not in times:
        raise FailedError(_last_words(said) or f"exit code {code}")
    return times[ENDED] - times[BEGAN]


@contextlib.contextmanager
def listening(command: Sequence[str], says: str, env: Mapping[str, str] | None = None) -> Iterator[int]:
    """A server that prints a line with its port, group 1 of the pattern `says`. Raises FailedError."""
    told = re.compile(says)
    with running(command, env) as process:
        port = _port(process, told)
        # What it says later must not fill the pipe.
        drain = threading.Thread(target=_drain, args=(process,), daemon=True)
        drain.start()
        yield port


@contextlib.contextmanager
def running(
    command: Sequence[str], env: Mapping[str, str] | None = None, folder: Path = ROOT
) -> Iterator[subprocess.Popen[str]]:
    """A process whose output is a pipe; ended at the end. Raises FailedError when it can't be started."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**(os.environ if env is None else env), "PYTHONUNBUFFERED": "1"},
            cwd=folder,
        )
    except OSError as error:
        raise FailedError(str(error)) from None
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[str], told: re.Pattern[str]) -> int:
    assert process.stdout is not None
    alarm = threading.Timer(_STARTING, process.kill)
    alarm.start()
    said = ""
    try:
        for line in process.stdout:
            said += line
            if match := told.search(line):
                return int(match[1])
    finally:
        alarm.cancel()
    raise FailedError(f"it did not start: {_last_words(said)}")


def _drain(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError, OSError):  # closed meanwhile
        while process.stdout.read(1 << 16):
            pass


def _last_words(said: str) -> str:
    """The last line that says something, for a cell of the table."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].replace("|", "/")[:160] if lines else ""
