"""Processor and wall time of a suite of tests on tapes, against pytest plugins that play cassettes, side by side.

    python -m bench.suites tapeproxy=PYTHON pytest-recording=PYTHON cassetter=PYTHON none=PYTHON

Each PYTHON is that of an environment with pytest, openai and the tool; the one of tapeproxy needs `tapeproxy[record]`.
`none` asks the provider live, with no plugin: what pytest and the SDK take by themselves. It is run by hand, and what
it says is in docs/PYTEST.md.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tapeproxy.testing import FakeProvider

TESTS = 200
ROUNDS = 5
_SUITE = """
import os
import openai
import pytest

client = openai.OpenAI(api_key="none", base_url=os.environ["PROVIDER"] + "/v1")

{mark}
@pytest.mark.parametrize("number", range({tests}))
def test_call(number):
    messages = [{{"role": "user", "content": f"Say the number {{number}}."}}]
    answer = client.chat.completions.create(model="gpt-4.1-mini", messages=messages)
    assert f"number {{number}}" in answer.choices[0].message.content
"""
_MARKS = {"tapeproxy": "@pytest.mark.tape", "none": ""}
_RECORD = {"tapeproxy": ["--tape-mode=once"], "none": []}
_REPLAY = {"tapeproxy": ["--tape-mode=none"], "none": []}


def main(named: list[str]) -> None:
    pythons = dict(word.split("=", 1) for word in named)
    with tempfile.TemporaryDirectory() as name:
        folders = {tool: Path(name) / tool for tool in pythons}
        with FakeProvider() as provider:
            for tool, folder in folders.items():
                folder.mkdir()
                (folder / "test_calls.py").write_text(
                    _SUITE.format(mark=_MARKS.get(tool, "@pytest.mark.vcr"), tests=TESTS)
                )
                _run(pythons[tool], folder, provider.url, _RECORD.get(tool, ["--record-mode=once"]))
            if "none" not in pythons:
                provider.stop()
            took: dict[str, list[tuple[float, float]]] = {tool: [] for tool in pythons}
            for _ in range(ROUNDS):
                for tool, folder in folders.items():
                    options = _REPLAY.get(tool, ["--record-mode=none"])
                    took[tool].append(_run(pythons[tool], folder, provider.url, options))
        for tool, figures in took.items():
            cpu, wall = (sorted(column) for column in zip(*figures, strict=True))
            kilobytes = (
                sum(path.stat().st_size for path in folders[tool].rglob("*") if path.suffix in (".gz", ".yaml")) // 1000
            )
            print(
                f"{tool}: processor {median(cpu):.2f} s ({cpu[0]:.2f}-{cpu[-1]:.2f}), "
                f"wall {median(wall):.2f} s, {median(cpu) / TESTS * 1e3:.1f} ms a test, {kilobytes} kB"
            )


def _run(python: str, folder: Path, provider: str, options: list[str]) -> tuple[float, float]:
    """Seconds of processor and of the clock that a run of pytest took, start included; it has to pass."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    argv = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    begun, before = time.monotonic(), os.times()
    done = subprocess.run(argv, cwd=folder, env={**kept, "PROVIDER": provider}, capture_output=True, text=True)
    after = os.times()
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.monotonic() - begun


if __name__ == "__main__":
    main(sys.argv[1:])
