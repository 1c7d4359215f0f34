"""Is a frozen run still what it was? It is replayed in one fresh process, and its test run in another."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tapeproxy.tapes.cireports import reason_of
from tapeproxy.tapes.frozentests import Expect
from tapeproxy.tapes.tracebacks import death

_PATIENCE = 60
"""Seconds that pytest may take to start and to end."""
_OUTER = frozenset(
    {"PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"}
)
"""What a pytest that we are run by has set for itself."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What the program did. `doubt`: why that is not what was recorded.

    `report`: as replay's, empty where there is none. `died_of`: the name of the exception that ended it, if known.
    """

    doubt: str
    report: dict[str, Any]
    died_of: str = ""


def try_replay(tape: Path, argv: Sequence[str], folder: Path, timeout: int, code: int) -> Trial:
    """Replay it in a process of its own."""
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.json"
        words = ["replay", "-q", "--timeout", str(timeout), "--report", str(report), str(tape), "--", *argv]
        done = subprocess.run(
            [sys.executable, "-m", "tapeproxy.cli.main", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if not report.exists():
            said = done.stderr.decode(errors="replace").strip().removeprefix("tapeproxy: ")
            return Trial(f"it could not be replayed: {said.partition(chr(10))[0]}", {})
        found: dict[str, Any] = json.loads(report.read_bytes())
    died_of = (death(done.stderr) or "").partition(" ")[0].rpartition(".")[2] if code else ""
    return Trial(_doubt(found, done.returncode, code), found, died_of)


def _doubt(report: dict[str, Any], now: int, code: int) -> str:
    """Why a replay was not as recorded; empty where it was."""
    for kind in ("violations", "drifts"):
        if found := report[kind]:
            return f"a replay makes a {kind.removesuffix('s')}: {found[0]['what']}: {found[0]['request']}"
    if report["stopped_by"]:
        return f"a replay was stopped: {report['stopped_by']}"
    if now != code:
        return f"a replay exits {now}, and the recorded run exited {code}"
    if unused := report["unused"]:
        listed = ", ".join(map(str, unused[:5]))
        return f"a replay did not ask for all that is on the tape: exchanges {listed}{'…' if unused[5:] else ''}"
    return ""


@dataclass(frozen=True, slots=True)
class Pytest:
    """How a test is run: by which `python`, in which folder.

    `secrets`: variables that it does not get. `timeout`: of the program that it runs, in seconds.
    """

    python: str
    test: Path
    root: Path
    secrets: tuple[str, ...]
    timeout: int


def doubt_of_pytest(pytest: Pytest, expect: Expect) -> str:
    """Run the test in a fresh process, as CI does, without a key; why it does not do what it says, or nothing."""
    kept = {name: value for name, value in os.environ.items() if name not in pytest.secrets and name not in _OUTER}
    try:
        done = subprocess.run(
            [pytest.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(pytest.test)],
            cwd=pytest.root,
            env=kept | {"CI": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=pytest.timeout + _PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "pytest did not end"
    except OSError as error:
        return f"{pytest.python} could not be run: {error.strerror}"
    if done.returncode == (0 if expect == "same" else 1):
        return ""
    said = done.stdout.decode(errors="replace")
    if "No module named pytest" in said:
        return f"there is no pytest for {pytest.python}: name the Python that has it with --python"
    return f"pytest exits {done.returncode}: {reason_of(said)}"
