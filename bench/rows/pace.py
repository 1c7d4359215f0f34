"""Paced replay: how far from its recorded time each event arrives."""

import time
from collections.abc import Iterator, Sequence

from bench.figures import Bar, Bench, Line, Sample, Skipped
from bench.material import stream_tape
from bench.servers import ask, environment, python, tapeproxy
from bench.stream import events


def pace(bench: Bench) -> Iterator[Line | Skipped]:
    """|arrival - due| at the 99th percentile, one stream and 20 at once.

    Beside it a process that does nothing but sleep as long: on a busy machine that is late, too.
    """
    count = 5 if bench.quick else 150
    for streams in (1, 20):
        replayed, slept = [], []
        for _ in bench.rounds(5):
            replayed.append(_replay(bench, streams, count))
            slept.append(_sleep(count))
        ours, bare = Sample("tapeproxy", "ms", replayed), Sample("a bare `time.sleep`", "ms", slept)
        side_by_side = "1 stream" if streams == 1 else f"{streams} streams at once"
        what = f"replay --pace recorded: 99th percentile of the error of an event's time, {side_by_side}"
        yield Line(what, ours, bare, ours.median, "ms", Bar(2, "at most"))


def _replay(bench: Bench, streams: int, count: int) -> float:
    tape = bench.folder / f"pace-{streams}.tape.jsonl.gz"
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
