"""Programs that a test starts: each has a tape of its own beside the test's, by the commands `record` and `replay`."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tapeproxy.plugin.places import SUFFIX
from tapeproxy.tapes.errors import TapeproxyError

VIOLATION, DRIFT = 3, 4
"""What `replay` exits with (docs/CLI.md)."""


class ProgramError(TapeproxyError):
    """A program that a test started did what is not on its tape, or came another way to it. `report`: as replay's."""

    def __init__(self, tape: Path, said: str, report: Mapping[str, Any]) -> None:
        self.report = report
        super().__init__(said, where=str(tape), fix="if the change is meant, record the test anew: --tape-mode=all")


def program_path(tape: Path, number: int) -> Path:
    """The tape of the test's `number`-th program."""
    return tape.with_name(f"{tape.name.removesuffix(SUFFIX)}.run{number}{SUFFIX}")


def of_test(tape: Path) -> Path:
    """The test's own tape, if this is one of a program that it starts."""
    name, dot, run = tape.name.removesuffix(SUFFIX).rpartition(".run")
    return tape.with_name(f"{name}{SUFFIX}") if dot and run.isdigit() else tape


def record_program(
    tape: Path, argv: Sequence[str], hosts: Mapping[str, str], upstream_ca: str | None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run it, and tape it. The code it exits with is its own."""
    words = ["record", "-q", "--force", "-o", str(tape)]
    words += [word for host, url in hosts.items() for word in ("--map", f"{host}={url}")]
    words += [] if upstream_ca is None else ["--upstream-ca", str(upstream_ca)]
    return _command(words, argv, **options)


def replay_program(
    tape: Path, argv: Sequence[str], rules: Iterable[str], **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run it from its tape. Raises ProgramError for violations and drifts."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["replay", "-q", "--report", str(report), *_rules(rules), str(tape)]
        done = _command(words, argv, **options)
        told: dict[str, Any] = json.loads(report.read_bytes()) if report.exists() else {}
    if done.returncode in (VIOLATION, DRIFT) and (told.get("violations") or told.get("drifts")):
        raise ProgramError(tape, done.stderr.strip(), told)
    return done


def _rules(rules: Iterable[str]) -> Iterator[str]:
    for rule in rules:
        kind, _, value = rule.partition(" ")
        yield from (f"--{kind}", value)


def _command(
    words: Sequence[str], argv: Sequence[str], *, environment: Mapping[str, str] | None, timeout: float | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tapeproxy.cli.main", *words, "--", *argv],
        env={**os.environ, **(environment or {})},
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
