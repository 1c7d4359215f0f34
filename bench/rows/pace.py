"""Paced replay: how far from its recorded time each event arrives."""

import time
from collections.abc import Iterator, Sequence

from bench.contest import OURS, Run, hold
from bench.figures import Bar, Bench, Line, Skipped
from bench.material import stream_tape
from bench.processes import ask, environment, python, tapeproxy
from bench.stream import events


def pace(bench: Bench) -> Iterator[Line | Skipped]:
    """|arrival - due| at the 99th percentile, one stream and 20 at once.

    Beside it a process that does nothing but sleep as long: on a busy machine that is late, too.
    """
    count = 5 if bench.quick else 100
    titles = {OURS: "1 stream", f"{OURS}, 20 streams": "20 streams at once"}
    bare = "a bare `time.sleep`"
    runs: dict[str, Run] = {
        OURS: lambda: _replay(bench, 1, count),
        f"{OURS}, 20 streams": lambda: _replay(bench, 20, count),
        bare: lambda: _sleep(count),
    }
    contest = hold(bench, "ms", runs, 5)
    for ours, side_by_side in titles.items():
        what = f"replay --pace recorded: 99th percentile of the error of an event's time, {side_by_side}"
        yield contest.beside(what, bare, Bar(2, "at most"), ours)


def _replay(bench: Bench, streams: int, count: int) -> float:
    tape = bench.folder / f"{streams}.tape.jsonl.gz"
    if not tape.exists():
        stream_tape(tape, streams, count)
    command = [*tapeproxy(), "replay", "-q", "--no-shim", "--pace", "recorded", str(tape), "--", *python("paced")]
    job = {"first": 0, "streams": streams, "count": count}
    return _p99(ask(command, job, environment(bench.folder)))


def _sleep(count: int) -> float:
    start = time.perf_counter_ns()
    errors: list[float] = []
    for event in events(0, count):
        time.sleep(max(start + event.due - time.perf_counter_ns(), 0) / 1e9)
        errors.append((time.perf_counter_ns() - start - event.due) / 1e6)
    return _p99(errors)


def _p99(errors: Sequence[float]) -> float:
    return sorted(map(abs, errors))[int(len(errors) * 0.99)]
