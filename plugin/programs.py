"""Programs that a test starts: each has a tape of its own beside the test's, by the commands `record` and `replay`."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tapeproxy.plugin.modes import Mode
from tapeproxy.proxy.inprocess.flows import outside
from tapeproxy.proxy.tapefile import is_locked
from tapeproxy.tapes.errors import TapeproxyError, install

VIOLATION, DRIFT = 3, 4
"""What `replay` exits with (docs/CLI.md)."""
UPDATE_IT = "if the change is meant: --tape-mode=update records what changed, --tape-mode=all the whole test"
RECORD_IT = "record it with --tape-mode=once, and commit it"
NO_RECORDER = f"recording it needs mitmproxy: {install('record')}"
ANEW = "if the change is meant, record the test anew: --tape-mode=all"
FROZEN = "the tape is frozen and no mode records it: if the change is meant, freeze a new run (tapeproxy repro)"


def record_it(mode: Mode) -> str:
    """What to do where there is no tape."""
    return NO_RECORDER if mode == "once" else RECORD_IT


class ProgramError(TapeproxyError):
    """A program that a test started did what is not on its tape, or came another way to it. `report`: as replay's."""

    def __init__(self, tape: Path, said: str, report: Mapping[str, Any], *, fix: str = UPDATE_IT) -> None:
        self.report = report
        super().__init__(said, where=str(tape), fix=fix)


class ProgramRun(subprocess.CompletedProcess[str]):
    """How a program of a test ended. `report`: as `replay --report` writes it; empty while it is recorded."""

    report: Mapping[str, Any] = MappingProxyType({})

    @property
    def served(self) -> int:
        """How many answers of its tape it got."""
        return int(self.report.get("served", 0))

    @property
    def unused(self) -> list[int]:
        """The exchanges on its tape that it did not ask for, by number."""
        return list(self.report.get("unused", ()))

    @property
    def trace_hash(self) -> str:
        """The trace hash of the answers that it got; empty while it is recorded."""
        return str(self.report.get("trace", ""))


def record_program(
    tape: Path, argv: Sequence[str], hosts: Mapping[str, str], upstream_ca: str | None, **options: Any
) -> ProgramRun:
    """Run it, and tape it. The code it exits with is its own."""
    return _command(["record", "-q", "--force", "-o", str(tape), *wire_words(hosts, upstream_ca)], argv, **options)


def replay_program(tape: Path, argv: Sequence[str], rules: Iterable[str], own: Path, **options: Any) -> ProgramRun:
    """Run it from its tape; `own`: where to leave a tape of that, if the first is not encrypted.

    Raises ProgramError for violations and drifts.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["replay", "-q", "--report", str(report), *_rules(rules)]
        words += [] if is_locked(tape) else ["--own-tape", str(own)]
        words.append(str(tape))
        done = _command(words, argv, **options)
        done.report = json.loads(report.read_bytes()) if report.exists() else {}
    if done.returncode in (VIOLATION, DRIFT) and (done.report.get("violations") or done.report.get("drifts")):
        raise ProgramError(tape, done.stderr.strip(), done.report)
    return done


def update_program(
    tape: Path, fresh: Path, argv: Sequence[str], wire: Iterable[str], rules: Iterable[str], **options: Any
) -> ProgramRun:
    """Run it from its tape, and write `fresh` where anything changed. The code it exits with is its own.

    `wire`: what `wire_words` gives. Raises ProgramError where the new tape could not be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["update", "-q", "--yes", "-o", str(fresh), "--report", str(report)]
        done = _command([*words, *wire, *_rules(rules), str(tape)], argv, **options)
        told: dict[str, Any] = json.loads(report.read_bytes()) if report.exists() else {}
    if not told or told["why"]:
        raise ProgramError(tape, done.stderr.strip(), told)
    done.returncode = told["agent_exit_code"]
    return done


def wire_words(hosts: Mapping[str, str], upstream_ca: str | None) -> list[str]:
    """The options that say where the world is."""
    words = [word for host, url in hosts.items() for word in ("--map", f"{host}={url}")]
    return words if upstream_ca is None else [*words, "--upstream-ca", str(upstream_ca)]


def _rules(rules: Iterable[str]) -> Iterator[str]:
    for rule in rules:
        kind, _, value = rule.partition(" ")
        yield from (f"--{kind}", value)


def _command(
    words: Sequence[str],
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None,
    environment: Mapping[str, str] | None,
    timeout: float | None,
) -> ProgramRun:
    with outside():  # else it would be told to ask nobody
        done = subprocess.run(
            [sys.executable, "-m", "tapeproxy.cli.main", *words, "--", *argv],
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    return ProgramRun(done.args, done.returncode, done.stdout, done.stderr)
