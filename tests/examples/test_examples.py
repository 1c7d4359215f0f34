"""What an example is; tests/e2e/test_examples.py runs each, unmodified."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapeproxy.testing import FakeProvider

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["anthropic_stream", "anthropic_stream_async", "local_server", "openai_tools", "research"]
HINTED = ["team"]
"""These know of tapeproxy, by its hints."""
PROXIES = {"http_proxy", "https_proxy", "all_proxy"}


def run(provider: FakeProvider, name: str, *arguments: str) -> str:
    """The example's output; fails with its stderr when it doesn't exit 0."""
    kept = {key: value for key, value in os.environ.items() if key.lower() not in PROXIES}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments],
        env={**kept, **provider.environment(), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_research_with_the_script_reads_the_page_it_found() -> None:
    with FakeProvider(EXAMPLES / "provider.toml") as provider:
        output = run(provider, "research", "How does a honeybee dance?")
    assert 'read_page {"slug": "honeybees"}' in output
    assert "Karl von Frisch" in output


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_does_not_know_what_watches_it(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "tapeproxy" not in text
    assert "base_url" not in text.replace("base_url=SEARCH_URL", "").replace('base_url=f"http://127.0.0.1:', "")


def test_every_example_is_tested_and_listed() -> None:
    found = {path.stem for path in EXAMPLES.glob("*.py")} - {"demo"}
    assert found == {*NAMES, *HINTED}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in (*NAMES, *HINTED) if f"`{name}.py`" not in listed] == []
