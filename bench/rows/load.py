"""Replay under load: distinct chat requests of 20 to 200 KB, each used once, over TLS through CONNECT."""

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contest import OURS, Contest, Run, hold
from bench.figures import Bar, Bench, Line, Skipped, Unit
from bench.material import chat_tape
from bench.mocks import Mockttp, mockttp, wiremock
from bench.processes import ask, environment, python, run, tapeproxy
from bench.servers import Endpoint, mitmdump, nginx, require_mitmdump

_REPLAYING = ("server_replay_extra=kill", "server_replay_reuse=false")

type Outcome = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measure:
    """What of a load is compared, and with whom: titles and bars of the peers, in the order of the table."""

    what: str
    unit: Unit
    figure: Callable[[Outcome], float]
    peers: Mapping[str, tuple[str, Bar | None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to send; `slow` conversations to those peers that take so much longer."""

    connections: int
    conversations: int
    turns: int
    slow: int
    rounds: int

    def job(self, conversations: int, **where: Any) -> dict[str, Any]:
        return {"connections": self.connections, "conversations": conversations, "turns": self.turns, **where}


def _rate(outcome: Outcome) -> float:
    return float(outcome["requests"] / outcome["seconds"])


def _median_us(outcome: Outcome) -> float:
    return statistics.median(outcome["latencies"]) * 1e6


_MITMDUMP = "`mitmdump --server-replay`"
_DROPS = "nginx, which drops the body"
_LOAD = Measure(
    "replay: requests/s, 8 connections",
    "/s",
    _rate,
    {
        "mitmdump": (_MITMDUMP, Bar(30, "at least", later=50)),
        "nginx": (_DROPS, Bar(0.7, "at least")),
    },
)
_MOCKS = Measure(
    _LOAD.what,
    "/s",
    _rate,
    {
        "mockttp with rules": ("mockttp, a rule for each request", Bar(4, "at least")),
        "mockttp with a table": ("mockttp, one callback with a table of the bodies", Bar(4, "at least")),
        "WireMock": ("WireMock, warm, a stub for each request, no proxy", None),
    },
)
_SHORT = Measure(
    "replay: requests/s, 8 connections, requests of 13 KB",
    "/s",
    _rate,
    {"mitmdump": (_MITMDUMP, Bar(30, "at least", later=50)), "nginx": (_DROPS, None)},
)
_LATENCY = Measure(
    "replay: time to the whole answer, 1 connection",
    "µs",
    _median_us,
    {
        "mitmdump": (_MITMDUMP, None),
        "nginx, reading": ("nginx, which reads the body first", Bar(1.3, "at most")),
    },
)
_PLANS = {
    "load": Plan(8, 32, 40, slow=8, rounds=7),
    "mocks": Plan(8, 128, 10, slow=8, rounds=5),
    "short": Plan(8, 512, 1, slow=512, rounds=5),
    "latency": Plan(1, 8, 40, slow=1, rounds=5),
}
_QUICK = {
    "load": Plan(2, 2, 2, slow=2, rounds=1),
    "mocks": Plan(2, 2, 2, slow=2, rounds=1),
    "short": Plan(2, 2, 1, slow=2, rounds=1),
    "latency": Plan(1, 1, 2, slow=1, rounds=1),
}


def load(bench: Bench) -> Iterator[Line | Skipped]:
    """Requests a second on 8 connections."""
    yield from _measured(bench, "load", _LOAD)


def mocks(bench: Bench) -> Iterator[Line | Skipped]:
    """The same against mock servers, which take longer to be ready than to answer."""
    yield from _measured(bench, "mocks", _MOCKS)


def short(bench: Bench) -> Iterator[Line | Skipped]:
    """Requests a second on 8 connections, of the first turns of conversations alone."""
    yield from _measured(bench, "short", _SHORT)


def latency(bench: Bench) -> Iterator[Line | Skipped]:
    """Time from a request's first byte to its answer's last, on one connection: the median of all requests."""
    yield from _measured(bench, "latency", _LATENCY)


def _measured(bench: Bench, name: str, measure: Measure) -> Iterator[Line | Skipped]:
    plan = (_QUICK if bench.quick else _PLANS)[name]
    field = _Field(bench, plan, chat_tape(bench.folder / "tape.jsonl.gz", plan.conversations, plan.turns))
    runs = {peer: getter(field, measure.figure) for peer, getter in _RUNS.items() if peer in (OURS, *measure.peers)}
    contest: Contest = hold(bench, measure.unit, runs, plan.rounds)
    for peer, (title, bar) in measure.peers.items():
        yield contest.ratio(f"{measure.what}, against {title}", peer, bar)


@dataclass(frozen=True, slots=True)
class _Field:
    """The competitors, each ready to be given the load."""

    bench: Bench
    plan: Plan
    tape: Path

    def tapeproxy(self) -> Outcome:
        command = [*tapeproxy(), "replay", "-q", "--no-shim", str(self.tape), "--", *python("load")]
        outcome: Outcome = ask(command, self.plan.job(self.plan.conversations), environment(self.bench.folder))
        return outcome

    def mitmdump(self) -> Outcome:
        require_mitmdump()
        flows = self.bench.folder / "flows"
        if not flows.exists():
            run([*python("flows"), str(flows), str(self.plan.slow), str(self.plan.turns)])
        with mitmdump(self.bench.folder, f"server_replay={flows}", *_REPLAYING) as server:
            return self._ask(server, self.plan.slow)

    def mockttp(self, how: Mockttp) -> Outcome:
        with mockttp(self.bench.folder, how, self.plan.slow, self.plan.turns) as server:
            return self._ask(server, self.plan.slow)

    def wiremock(self) -> Outcome:
        with wiremock(self.bench.folder, self.plan.slow, self.plan.turns) as server:
            if not self.bench.quick:  # the first time warms the Java machine up
                self._ask(server, self.plan.slow, target=None)
            return self._ask(server, self.plan.slow, target=None)

    def nginx(self, *, reads_body: bool) -> Outcome:
        with nginx(self.bench.folder, reads_body=reads_body) as server:
            return self._ask(server, self.plan.conversations, target=None, marked=False)

    def _ask(self, server: Endpoint, conversations: int, **how: Any) -> Outcome:
        job = self.plan.job(conversations, port=server.port, ca=str(server.ca), **how)
        outcome: Outcome = ask(python("load"), job)
        return outcome


def _runs(play: Callable[[_Field], Outcome]) -> Callable[[_Field, Callable[[Outcome], float]], Run]:
    return lambda field, figure: lambda: figure(play(field))


_RUNS = {
    OURS: _runs(_Field.tapeproxy),
    "mitmdump": _runs(_Field.mitmdump),
    "mockttp with rules": _runs(lambda field: field.mockttp("rules")),
    "mockttp with a table": _runs(lambda field: field.mockttp("table")),
    "WireMock": _runs(_Field.wiremock),
    "nginx": _runs(lambda field: field.nginx(reads_body=False)),
    "nginx, reading": _runs(lambda field: field.nginx(reads_body=True)),
}
