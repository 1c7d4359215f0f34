"""The benchmark runs and writes its table. What it measures is never asserted: these machines are shared."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = pytest.mark.skipif(
    importlib.util.find_spec("mitmproxy") is None, reason="the peer, mitmproxy, is not installed"
)


def bench(*arguments: str, peers: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Without the peers that would have to be installed: none are in `peers`."""
    command, env = [sys.executable, "-m", "bench", *arguments], {**os.environ, "BENCH_PEERS": str(peers)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=280, check=False)


@NEEDED
def test_a_smoke_run_writes_the_rows_that_are_named(tmp_path: Path) -> None:
    document = tmp_path / "BENCHMARKS.md"
    run = bench("--quick", "--output", str(document), "size", "startup", peers=tmp_path)
    assert run.returncode == 0, run.stderr
    assert f"written: {document}" in run.stdout
    assert "gzipped HAR" in document.read_text()


@NEEDED
@pytest.mark.soak
def test_a_smoke_run_measures_every_row_and_writes_its_table(tmp_path: Path) -> None:
    document = tmp_path / "BENCHMARKS.md"
    run = bench("--quick", "--output", str(document), peers=tmp_path)
    assert run.returncode == 0, run.stderr
    lines = [line for line in document.read_text().splitlines() if line.startswith("| ")]
    for row in (
        "replay: requests/s, 8 connections",
        "against mockttp",
        "time to the whole answer",
        "`tapeproxy replay TAPE -- true`",
        "record: requests/s",
        "first event",
        "20 streams at once",
        "recording it against replaying it",
        "to the first answer",
        "a call of `time.time()`",
        "loopback alone",
        "all of it",
        "added start-up",
        "tape, against its gzipped HAR",
    ):
        (line, *_) = [line for line in lines if row in line]
        ours, figure = line.split(" | ")[1], line.split(" | ")[3]
        assert (ours and figure) or "skipped: " in line
    assert f"written: {document}" in run.stdout


def test_a_row_that_is_not_there_is_named() -> None:
    run = bench("lode")
    assert run.returncode == 2
    assert "no such row: lode" in run.stderr
