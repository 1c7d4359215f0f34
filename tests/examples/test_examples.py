"""Each example, unmodified, as a process of its own against the fake provider."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapeproxy.testing import FakeProvider

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["anthropic_stream", "anthropic_stream_async", "local_server", "openai_tools", "research"]
HINTED = ["team"]
"""These know of tapeproxy, by its hints; tests/e2e/test_examples.py runs them."""
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


@pytest.mark.parametrize(
    ("arguments", "said", "paths"),
    [
        (["openai_tools"], ["get_weather", "12 °C and dry in Lima."], ["/v1/chat/completions"] * 2),
        (["anthropic_stream", "Why so blue?"], ["Why so blue?", " in, "], ["/v1/messages"]),
        (["anthropic_stream_async"], ["Argue for it.", "Argue against it.", " pieces: "], ["/v1/messages"] * 2),
        (["research"], ["search ", '"slug":"tides"'], ["/v1/chat/completions", "/search", "/v1/chat/completions"]),
        (["local_server"], ['stock {"item": "tape"}', '"count": 12'], ["/v1/responses"] * 2),
    ],
)
def test_an_example_runs(arguments: list[str], said: list[str], paths: list[str]) -> None:
    with FakeProvider() as provider:
        output = run(provider, *arguments)
    assert [part for part in said if part not in output] == []
    assert [request.path for request in provider.requests] == paths


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
