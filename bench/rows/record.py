"""Recording under load: the same conversations through the recorder, the bare mitmproxy below it, and mitmdump."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from bench.contest import OURS, Run, hold
from bench.figures import Bar, Bench, Line, Skipped
from bench.processes import ask, environment, python, tapeproxy
from bench.servers import Endpoint, bare_mitmproxy, mitmdump, origin, require_mitmdump

_HOST = "api.example.com"


def record(bench: Bench) -> Iterator[Line | Skipped]:
    """Requests a second on 8 connections, TLS on both sides; ours redacts, as it does by itself."""
    size = {"connections": 2, "conversations": 2, "turns": 2} if bench.quick else _SIZE
    with origin(bench.folder) as server:
        trusting = f"ssl_verify_upstream_trusted_ca={server.ca}"
        flows = bench.folder / "flows"
        runs: dict[str, Run] = {
            OURS: lambda: _ours(bench, server, size),
            "mitmproxy, no addon": lambda: _through(lambda: bare_mitmproxy(bench.folder, server.ca), server, size),
            "mitmdump -w": lambda: _through(
                lambda: mitmdump(bench.folder, trusting, f"save_stream_file={flows}"), server, size
            ),
        }
        contest = hold(bench, "/s", runs, 7)
    what = f"record: requests/s, {size['connections']} connections"
    against = f"{what}, against the same mitmproxy with no addon"
    yield contest.ratio(against, "mitmproxy, no addon", Bar(0.92, "at least"))
    yield contest.ratio(f"{what}, against `mitmdump -w`", "mitmdump -w", Bar(1.8, "at least"))


_SIZE = {"connections": 8, "conversations": 16, "turns": 40}


def _ours(bench: Bench, server: Endpoint, size: dict[str, int]) -> float:
    require_mitmdump()  # recording needs mitmproxy as well
    tape = bench.folder / "tape.jsonl.gz"
    command = [
        *(*tapeproxy(), "record", "-q", "--no-shim", "--force", "-o", str(tape)),
        *("--map", f"{_HOST}=https://127.0.0.1:{server.port}", "--upstream-ca", str(server.ca)),
        *("--", *python("load")),
    ]
    return _rate(ask(command, {**size, "marked": False}, environment(bench.folder)))


def _through(
    start: Callable[[], contextlib.AbstractContextManager[Endpoint]], server: Endpoint, size: dict[str, int]
) -> float:
    with start() as proxy:
        target = f"127.0.0.1:{server.port}"
        job = {**size, "marked": False, "target": target, "port": proxy.port, "ca": str(proxy.ca)}
        return _rate(ask(python("load"), job))


def _rate(outcome: dict[str, Any]) -> float:
    return float(outcome["requests"] / outcome["seconds"])
