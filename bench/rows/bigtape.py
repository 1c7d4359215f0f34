"""A big tape: how long its replay takes to the first answer, and how much memory."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.contest import OURS
from bench.figures import Bar, Bench, Line, Sample, Skipped
from bench.material import big_tape as write
from bench.processes import environment, python, run, tapeproxy

_MB = 1_000_000
_LAUNCHER = """
import resource, subprocess, sys, time
start = time.perf_counter()
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as process:
    said = process.stdout.readline()
    seconds = time.perf_counter() - start
assert said and process.returncode == 0, process.returncode
print(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def big_tape(bench: Bench) -> Iterator[Line | Skipped]:
    """The first exchange of the tape is asked for, by a client process of its own, which is in the time."""
    size = 2 * _MB if bench.quick else 1000 * _MB if bench.full else 100 * _MB
    began = time.monotonic()
    tape = write(bench.folder / "tape.jsonl.gz", size)
    named = f"a tape of {size // _MB} MB of lines ({tape.stat().st_size // _MB} MB compressed)"
    bench.say(f"wrote {named} in {time.monotonic() - began:.0f} s")
    runs = [_replay(bench, tape, "--no-shim") for _ in bench.rounds(3)]
    seconds, memory = Sample(OURS, "s", [a for a, _ in runs]), Sample(OURS, "MB", [b for _, b in runs])
    what = f"replay {named} without the shim: from start to the first answer"
    yield Line(what, seconds, None, seconds.median, "s", Bar(2, "at most"))
    yield Line(f"replay {named} without the shim: memory", memory, None, memory.median, "MB", Bar(150, "at most"))
    tape = write(bench.folder / "shimmed.jsonl.gz", size, seed="00" * 32)
    # It has no readings of the clock, and the client makes some: drifts, which are not measured here.
    runs = [_replay(bench, tape, "--on-drift", "report") for _ in bench.rounds(3)]
    seconds, memory = Sample(OURS, "s", [a for a, _ in runs]), Sample(OURS, "MB", [b for _, b in runs])
    # All of it is read before the agent starts (decision 45), so the time grows with the tape, and has no bar.
    what = f"replay {named} with the shim, which reads it first: from start to the first answer"
    yield Line(what, seconds, None, seconds.median, "s", None)
    yield Line(f"replay {named} with the shim: memory", memory, None, memory.median, "MB", Bar(150, "at most"))


def _replay(bench: Bench, tape: Path, *words: str) -> tuple[float, float]:
    """Seconds from the start to the first answer, and the most memory in MB."""
    # The launcher has little memory itself: a child's peak begins with that of the process it is forked from.
    command = [sys.executable, "-c", _LAUNCHER, *tapeproxy(), "replay", "-q", *words, str(tape), "--"]
    job = json.dumps({"connections": 1, "conversations": 1, "turns": 1})
    patience = 200.0 if bench.full else 30.0
    said = run([*command, *python("load")], environment(bench.folder), job, patience=patience)
    seconds, kilobytes = said.splitlines()[-1].split()
    return float(seconds), int(kilobytes) * 1024 / _MB
