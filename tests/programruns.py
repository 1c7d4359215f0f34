"""Records and replays the programs of tests/e2e/programs, and compares all that can be seen of two runs.

What can be seen: what it printed, and each request as it came to the wire, with its lane, position and headers.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import warm
from clirun import Cli, maps
from shimruns import SOAK_PYTHON

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "e2e" / "programs"
OVERLOADED = {"reply": [{"status": 503, "times": 3}, {"text": "Hello."}]}

type Wire = tuple[str, ...]
"""Lane, number in it, clock reads, method, URL, headers as JSON, body; bytes as Latin-1."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What can be seen of a run: its output, and its requests, those of each lane in their order."""

    output: str
    requests: Sequence[Wire]


def soak_python() -> str:
    """The interpreter of the agents' environment; skips where there is none."""
    if not SOAK_PYTHON.exists():
        pytest.skip("no .venv-soak here: `make soak` makes it")
    return str(SOAK_PYTHON)


def record(program: str, cli: Cli, home: Path, tape: str, *options: str, python: str = sys.executable) -> Seen:
    """Record a program against a provider of its own. Fails when the program fails."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    script = OVERLOADED if program == "retries" else None
    with FakeProvider(script=script, tls=tls) as provider:
        argv = [python, str(PROGRAMS / f"{program}.py")]
        done = cli.run("record", "-o", tape, *options, *maps(provider.url), "--", *argv, keys=True)
    assert done.returncode == 0, done.stderr
    assert "come through the proxy" not in done.stderr
    return Seen(done.stdout, taped(cli.cwd / tape))


def taped(path: Path) -> list[Wire]:
    """The requests on a tape."""
    tape, _ = load(path)
    return sorted(
        _wire(
            (str(request.lane), str(request.n), str(request.reads)),
            [request.method.decode("latin-1"), request.url.decode("latin-1"), exchange.request_body.decode("latin-1")],
            [[name.decode("latin-1"), value.decode("latin-1")] for name, value in request.headers],
        )
        for exchange in tape.exchanges
        for request in [exchange.request]
    )


def replay(cli: Cli, tape: str) -> Seen:
    """Replay a tape and listen on the wire. Fails when it violates, drifts, or leaves something unasked."""
    out = cli.cwd / "heard.jsonl"
    out.unlink(missing_ok=True)
    argv = [sys.executable, str(PROGRAMS.with_name("heard_replay.py")), tape, str(out)]
    done = warm.run(argv, cli.cwd, cli.environment() | _coverage())
    assert done.returncode == 0, done.stderr
    exchanges = len(load(cli.cwd / tape)[0].exchanges)
    assert done.stderr.splitlines()[-1] == f"{exchanges} of {exchanges} exchanges served", done.stderr
    return Seen(done.stdout, sorted(_heard(line) for line in out.read_text().splitlines()))


def _coverage() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}


def _heard(line: str) -> Wire:
    lane, n, reads, method, url, body, headers = json.loads(line)
    return _wire((lane, n, reads), [method, url, body], headers)


def _wire(who: Sequence[str], parts: Sequence[str], headers: Sequence[Sequence[str]]) -> Wire:
    """Credentials are others by design: tokens on a tape, placeholders in a replay."""
    kept = [[name, "-" if name.lower() in ("authorization", "x-api-key") else value] for name, value in headers]
    return (*who, *parts, json.dumps(kept))
