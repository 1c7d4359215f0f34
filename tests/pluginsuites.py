"""A folder with tests that hear tapes, run by pytest in processes of their own."""

from pathlib import Path

import inprocesstapes
import pytest

GET = "import httpx, pytest\n\ndef get(path):\n    return httpx.get('https://api.test' + path).text\n"


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
        plugins = ("-p", "tapeproxy.plugin.entry", "-p", "anyio", "-W", "error")
        return self._pytester.runpytest_subprocess(*plugins, *args)
