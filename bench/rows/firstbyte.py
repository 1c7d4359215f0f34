"""Recording: how much later the first event of a stream comes through the proxy than without it."""

import statistics
from collections.abc import Iterator
from typing import Any

from bench.contest import OURS, Run, hold
from bench.figures import Bar, Bench, Line, Skipped
from bench.processes import ask, environment, python, tapeproxy
from bench.servers import Endpoint, bare_mitmproxy, mitmdump, origin, require_mitmdump

_HOST = "api.example.com"


def first_byte(bench: Bench) -> Iterator[Line | Skipped]:
    """Added time to the first event, warm connection; direct and proxied requests take turns."""
    what = "record: added time to the first event of a stream"
    count = 3 if bench.quick else 100
    with origin(bench.folder) as server:
        runs: dict[str, Run] = {
            OURS: lambda: _added_ms(_record(bench, server, count)),
            "mitmproxy, no addon": lambda: _added_ms(_bare(bench, server, count)),
            "mitmdump, stream_large_bodies=1": lambda: _added_ms(
                _mitmdump(bench, server, count, "stream_large_bodies=1")
            ),
            "mitmdump": lambda: _added_ms(_mitmdump(bench, server, count)),
        }
        contest = hold(bench, "ms", runs, 5)
    titles = {
        "mitmdump, stream_large_bodies=1": ("a mitmdump that is told to stream", Bar(1, "at most")),
        "mitmdump": ("mitmdump as it comes", None),
        "mitmproxy, no addon": ("the same mitmproxy with no addon, which passes nothing on before the end", None),
    }
    for peer, (title, bar) in titles.items():
        yield contest.beside(f"{what}, beside {title}", peer, bar)


def _added_ms(outcome: dict[str, Any]) -> float:
    """The median over the pairs, so that a slow moment of the machine does not count for one side alone."""
    pairs = zip(outcome["direct"], outcome["through"], strict=True)
    return statistics.median(through - direct for direct, through in pairs) * 1000


def _record(bench: Bench, server: Endpoint, count: int) -> dict[str, Any]:
    require_mitmdump()  # recording needs mitmproxy as well
    tape = bench.folder / "tape.jsonl.gz"
    command = [
        *(*tapeproxy(), "record", "-q", "--no-shim", "--force", "-o", str(tape)),
        *("--map", f"{_HOST}=https://127.0.0.1:{server.port}", "--upstream-ca", str(server.ca)),
        *("--", *python("firstbyte")),
    ]
    outcome: dict[str, Any] = ask(command, _job(server, count, _HOST, 443), environment(bench.folder))
    return outcome


def _mitmdump(bench: Bench, server: Endpoint, count: int, *settings: str) -> dict[str, Any]:
    with mitmdump(bench.folder, f"ssl_verify_upstream_trusted_ca={server.ca}", *settings) as proxy:
        return _through(proxy, server, count)


def _bare(bench: Bench, server: Endpoint, count: int) -> dict[str, Any]:
    with bare_mitmproxy(bench.folder, server.ca) as proxy:
        return _through(proxy, server, count)


def _through(proxy: Endpoint, server: Endpoint, count: int) -> dict[str, Any]:
    where = {"proxy": proxy.port, "ca": str(proxy.ca)}
    outcome: dict[str, Any] = ask(python("firstbyte"), _job(server, count, "127.0.0.1", server.port) | where)
    return outcome


def _job(server: Endpoint, count: int, host: str, target: int) -> dict[str, Any]:
    return {"count": count, "origin": server.port, "origin_ca": str(server.ca), "host": host, "target": target}
