"""Replay under load: distinct chat requests of 20 to 200 KB, each used once, over TLS through CONNECT."""

import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Bar, Bench, Line, Sample, Skipped, Unit, ratio
from bench.material import chat_tape
from bench.servers import ROOT, MissingError, ask, environment, mitmdump, nginx, python, require_mitmdump, tapeproxy

_REPLAYING = ("server_replay_extra=kill", "server_replay_reuse=false")


@dataclass(frozen=True, slots=True)
class _Plan:
    """How much to send."""

    connections: int
    conversations: int
    turns: int

    @property
    def fewer(self) -> int:
        """Conversations for mitmdump, which takes so much longer; all of them where they are short."""
        return self.connections if self.turns > 1 else self.conversations

    def job(self, conversations: int, **where: Any) -> dict[str, Any]:
        return {"connections": self.connections, "conversations": conversations, "turns": self.turns, **where}


@dataclass(frozen=True, slots=True)
class _Field:
    """The competitors, ready to run."""

    bench: Bench
    plan: _Plan
    tape: Path
    flows: Path

    @classmethod
    def prepare(cls, bench: Bench, plan: _Plan) -> "_Field":
        name = f"{plan.connections}-connections-{plan.turns}-turns"
        tape = chat_tape(bench.folder / f"{name}.tape.jsonl.gz", plan.conversations, plan.turns)
        return cls(bench, plan, tape, bench.folder / f"{name}.flows")

    def tapeproxy(self) -> dict[str, Any]:
        command = [*tapeproxy(), "replay", "-q", "--no-shim", str(self.tape), "--", *python("load")]
        return ask(command, self.plan.job(self.plan.conversations), environment(self.bench.folder))

    def mitmdump(self) -> dict[str, Any]:
        require_mitmdump()
        if not self.flows.exists():
            numbers = (str(self.plan.fewer), str(self.plan.turns))
            subprocess.run([*python("flows"), str(self.flows), *numbers], cwd=ROOT, check=True)
        with mitmdump(self.bench.folder, f"server_replay={self.flows}", *_REPLAYING) as server:
            job = self.plan.job(self.plan.fewer, port=server.port, ca=str(server.ca))
            return ask(python("load"), job)

    def nginx(self, *, reads_body: bool) -> dict[str, Any]:
        with nginx(self.bench.folder, reads_body=reads_body) as server:
            where = {"port": server.port, "ca": str(server.ca), "direct": True}
            return ask(python("load"), self.plan.job(self.plan.conversations, **where))


@dataclass(frozen=True, slots=True)
class _Contest:
    """What is compared: a `figure` of each outcome, with the bars against mitmdump and nginx."""

    what: str
    unit: Unit
    figure: Callable[[dict[str, Any]], float]
    nginx_reads_body: bool
    bars: tuple[Bar | None, Bar | None]

    def run(self, field: _Field, rounds: range) -> Iterator[Line | Skipped]:
        runs: dict[str, Callable[[], dict[str, Any]]] = {
            "tapeproxy": field.tapeproxy,
            "mitmdump": field.mitmdump,
            "nginx": lambda: field.nginx(reads_body=self.nginx_reads_body),
        }
        found: dict[str, list[float]] = {name: [] for name in runs}
        missing: dict[str, str] = {}
        for _ in rounds:
            for name in [name for name in runs if name not in missing]:
                try:
                    found[name].append(self.figure(runs[name]()))
                except MissingError as error:
                    missing[name] = str(error)
        ours = Sample("tapeproxy", self.unit, found["tapeproxy"])
        for name, bar in zip(("mitmdump", "nginx"), self.bars, strict=True):
            against = f"{self.what}, against {self._title(name)}"
            if name in missing:
                yield Skipped(against, missing[name])
            else:
                yield ratio(against, ours, Sample(name, self.unit, found[name]), bar)

    def _title(self, name: str) -> str:
        if name == "mitmdump":
            return "`mitmdump --server-replay`"
        return "nginx, which reads the body first" if self.nginx_reads_body else "nginx, which drops the body"


def load(bench: Bench) -> Iterator[Line | Skipped]:
    """Requests a second on 8 connections."""
    plan = _Plan(2, 2, 2) if bench.quick else _Plan(8, 32, 40)
    contest = _Contest(
        f"replay: requests/s, {plan.connections} connections",
        "/s",
        lambda outcome: outcome["requests"] / outcome["seconds"],
        nginx_reads_body=False,
        bars=(Bar(30, "at least", later=50), Bar(0.7, "at least")),
    )
    yield from contest.run(_Field.prepare(bench, plan), bench.rounds(7))


def short(bench: Bench) -> Iterator[Line | Skipped]:
    """Requests a second on 8 connections, of the first turns of conversations alone."""
    plan = _Plan(2, 2, 1) if bench.quick else _Plan(8, 512, 1)
    contest = _Contest(
        f"replay: requests/s, {plan.connections} connections, requests of 13 KB",
        "/s",
        lambda outcome: outcome["requests"] / outcome["seconds"],
        nginx_reads_body=False,
        bars=(Bar(30, "at least", later=50), Bar(0.7, "at least")),
    )
    yield from contest.run(_Field.prepare(bench, plan), bench.rounds(5))


def latency(bench: Bench) -> Iterator[Line | Skipped]:
    """Time from a request's first byte to its answer's last, on one connection: the median of all requests."""
    plan = _Plan(1, 1, 2) if bench.quick else _Plan(1, 8, 40)
    contest = _Contest(
        "replay: time to the whole answer, 1 connection",
        "µs",
        lambda outcome: statistics.median(outcome["latencies"]) * 1e6,
        nginx_reads_body=True,
        bars=(None, Bar(1.3, "at most")),
    )
    yield from contest.run(_Field.prepare(bench, plan), bench.rounds(5))
