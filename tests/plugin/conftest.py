"""What the plugin's tests share: a folder with tests, and a world that they may ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from origin import Call, Origin
from pluginsuites import Suite


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Suite:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CI", raising=False)
    return Suite(pytester)


WORLD = """import pytest

@pytest.fixture(scope="session")
def tape_config():
    return {{"hosts": {{"api.test": {url!r}}}}}
"""


@pytest.fixture
def world(suite: Suite) -> Iterator[list[str]]:
    """What was asked of it: whoever records asks it."""
    asked: list[str] = []

    async def answer(call: Call) -> None:
        asked.append(call.request.target)
        text = f"{call.request.target} live".encode()
        await call.head("200 OK", f"Content-Length: {len(text)}")
        await call.send(text)

    with Origin(answer) as running:
        (suite.path / "conftest.py").write_text(WORLD.format(url=running.url), "utf-8")
        yield asked
