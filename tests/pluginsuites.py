"""A folder with tests that hear tapes, run by pytest in processes of their own."""

import os
import sys
from pathlib import Path

import inprocesstapes
import pytest
import warm

_PLUGINS = ("-p", "tapeproxy.plugin.entry", "-p", "anyio.pytest_plugin", "-W", "error")
GET = "import httpx, pytest\n\ndef get(path):\n    return httpx.get('https://api.test' + path).text\n"


def run_pytest(folder: Path, *args: str) -> pytest.RunResult:
    """Run pytest there, in a fork of a process that has our code and pytest's imported (warm.py)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = warm.run([sys.executable, "-m", "pytest", *args], folder, environment)
    print(done.stdout, done.stderr)
    return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0)


class Suite:
    """A folder with tests, run in processes of their own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.path = pytester.path
        self._pytester = pytester

    def file(self, name: str, text: str) -> None:
        (self.path / f"{name}.py").write_text(GET + text, "utf-8")

    def tape(self, place: str, *paths: str) -> Path:
        """The tape of `place`, MODULE/TEST, with GETs of these paths."""
        path = self.path / "tapes" / f"{place}.tape.jsonl.gz"
        return inprocesstapes.gets(path.parent, *paths).rename(path)

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest here, as `run_pytest` does."""
        return run_pytest(self.path, *_PLUGINS, *args)

    def run_anew(self, *args: str) -> pytest.RunResult:
        """Run pytest here, in a process that starts from nothing."""
        return self._pytester.runpytest_subprocess(*_PLUGINS, *args)
