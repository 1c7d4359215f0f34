"""Recording: how much later the first event of a stream comes through the proxy than without it."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from bench.figures import Bar, Bench, Line, Sample, Skipped
from bench.servers import (
    Endpoint,
    MissingError,
    ask,
    environment,
    mitmdump,
    python,
    require_mitmdump,
    stream_origin,
    tapeproxy,
)

_HOST = "api.example.com"


def first_byte(bench: Bench) -> Iterator[Line | Skipped]:
    """Added time to the first event, warm connection; direct and proxied requests take turns."""
    what = "record: added time to the first event of a stream"
    count = 3 if bench.quick else 150
    added: dict[str, list[float]] = {"record": [], "plain": [], "streaming": []}
    try:
        require_mitmdump()  # record needs it as well
    except MissingError as error:
        yield Skipped(what, str(error))
        return
    with stream_origin(bench.folder) as origin:
        runs: dict[str, Callable[[], dict[str, Any]]] = {
            "record": lambda: _record(bench, origin, count),
            "plain": lambda: _mitmdump(bench, origin, count),
            "streaming": lambda: _mitmdump(bench, origin, count, "stream_large_bodies=1"),
        }
        for _ in bench.rounds(5):
            for name, run in runs.items():
                added[name].append(_added_ms(run()))
    ours = Sample("tapeproxy record", "ms", added["record"])
    streaming = Sample("mitmdump, stream_large_bodies=1", "ms", added["streaming"])
    yield Line(
        f"{what}, beside a mitmdump that is told to stream", ours, streaming, ours.median, "ms", Bar(1, "at most")
    )
    plain = Sample("mitmdump", "ms", added["plain"])
    yield Line(f"{what}, beside mitmdump as it comes", ours, plain, ours.median, "ms", Bar(1, "at most"))


def _added_ms(outcome: dict[str, Any]) -> float:
    """The median over the pairs, so that a slow moment of the machine does not count for one side alone."""
    pairs = zip(outcome["direct"], outcome["through"], strict=True)
    return statistics.median(through - direct for direct, through in pairs) * 1000


def _record(bench: Bench, origin: Endpoint, count: int) -> dict[str, Any]:
    tape = bench.folder / "first-byte.tape.jsonl.gz"
    command = [
        *(*tapeproxy(), "record", "-q", "--no-shim", "--force", "-o", str(tape)),
        *("--map", f"{_HOST}=https://127.0.0.1:{origin.port}", "--upstream-ca", str(origin.ca)),
        *("--", *python("firstbyte")),
    ]
    job = {"host": _HOST, "target": 443}
    return ask(command, _job(origin, count) | job, environment(bench.folder))


def _mitmdump(bench: Bench, origin: Endpoint, count: int, *settings: str) -> dict[str, Any]:
    with mitmdump(bench.folder, f"ssl_verify_upstream_trusted_ca={origin.ca}", *settings) as server:
        job = {"host": "127.0.0.1", "target": origin.port, "proxy": server.port, "ca": str(server.ca)}
        return ask(python("firstbyte"), _job(origin, count) | job)


def _job(origin: Endpoint, count: int) -> dict[str, Any]:
    return {"count": count, "origin": origin.port, "origin_ca": str(origin.ca)}
