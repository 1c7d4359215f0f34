"""Whole processes: a replay that does nothing, against mitmdump's start and a bare import of httpx."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from bench.figures import Bar, Bench, Line, Sample, Skipped, ratio
from bench.material import chat_tape
from bench.servers import MissingError, environment, listening_mitmdump, mitmdump_command, tapeproxy


def startup(bench: Bench) -> Iterator[Line | Skipped]:
    """`tapeproxy replay TAPE -- true`, from start to exit; the tape holds 8 chat requests (0.9 MB)."""
    what = "`tapeproxy replay TAPE -- true`"
    tape = chat_tape(bench.folder / "startup.tape.jsonl.gz", 1, 8)
    env = environment(bench.folder)
    ours = [*tapeproxy(), "replay", "-q", str(tape), "--", "true"]
    bare = [sys.executable, "-c", "import httpx"]
    runs: dict[str, Callable[[], object]] = {
        "tapeproxy": lambda: subprocess.run(ours, env=env, check=True),
        "python": lambda: subprocess.run(bare, check=True),
    }
    try:
        mitm = mitmdump_command(bench.folder)
        runs["mitmdump"] = lambda: _listen(mitm)
    except MissingError as error:
        yield Skipped(f"{what}, against mitmdump until it listens", str(error))
    for run in runs.values():  # byte code, certificates and the disk's cache
        run()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in bench.rounds(15):
        for name, run in runs.items():
            taken[name].append(_timed(run))
    samples = {name: Sample(name, "ms", values) for name, values in taken.items()}
    if "mitmdump" in samples:
        against = f"{what}, against mitmdump until it listens"
        yield ratio(against, samples["tapeproxy"], samples["mitmdump"], Bar(0.5, "at most"))
    yield ratio(
        f"{what}, against `python -c 'import httpx'`", samples["tapeproxy"], samples["python"], Bar(1.5, "at most")
    )


def _timed(run: Callable[[], object]) -> float:
    """Milliseconds that `run` takes, or those that it says itself."""
    start = time.perf_counter()
    said = run()
    return said if isinstance(said, float) else (time.perf_counter() - start) * 1000


def _listen(command: list[str]) -> float:
    start = time.perf_counter()
    with listening_mitmdump(command):
        return (time.perf_counter() - start) * 1000
