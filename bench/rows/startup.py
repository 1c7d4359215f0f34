"""Whole processes: a replay that does nothing, against mitmdump's start and a bare import of httpx."""

import sys
import time
from collections.abc import Iterator

from bench.contest import OURS, Run, hold, warm
from bench.figures import Bar, Bench, Line, Skipped
from bench.material import chat_tape
from bench.processes import environment, listening, run, tapeproxy
from bench.servers import LISTENING, mitmdump_command


def startup(bench: Bench) -> Iterator[Line | Skipped]:
    """`tapeproxy replay TAPE -- true`, from start to exit; the tape holds 8 chat requests (0.9 MB)."""
    what = "`tapeproxy replay TAPE -- true`"
    tape = chat_tape(bench.folder / "tape.jsonl.gz", 1, 8)
    env = environment(bench.folder)
    runs: dict[str, Run] = {
        OURS: lambda: _run_ms([*tapeproxy(), "replay", "-q", str(tape), "--", "true"], env),
        "mitmdump": lambda: _listen_ms(mitmdump_command(bench.folder)),
        "python": lambda: _run_ms([sys.executable, "-c", "import httpx"], env),
    }
    out = warm(bench, "ms", runs)  # byte code, certificates and the disk's cache
    contest = hold(bench, "ms", runs, 20, out)
    yield contest.ratio(f"{what}, against mitmdump until it listens", "mitmdump", Bar(0.5, "at most"))
    yield contest.ratio(f"{what}, against `python -c 'import httpx'`", "python", Bar(1.5, "at most"))


def _run_ms(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    run(command, env)
    return (time.perf_counter() - start) * 1000


def _listen_ms(command: list[str]) -> float:
    start = time.perf_counter()
    with listening(command, LISTENING):
        return (time.perf_counter() - start) * 1000
