"""Programs that are different every time they run, and the same in every replay of one tape."""

import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

PROGRAMS = Path(__file__).parent / "programs"
OVERLOADED = {"reply": [{"status": 503, "times": 3}, {"text": "Hello."}]}
REPLAYS = 3


def record(program: str, cli: Cli, home: Path, tape: str) -> str:
    """Record a program against a provider of its own; returns what it printed."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    script = OVERLOADED if program == "retries" else None
    with FakeProvider(script=script, tls=tls) as provider:
        argv = [sys.executable, str(PROGRAMS / f"{program}.py")]
        done = cli.run("record", "-o", tape, *maps(provider.url), "--", *argv, keys=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["threads_and_tasks", "retries", "processes", "uploads"])
def test_a_replay_is_the_recording_to_the_last_byte(program: str, cli: Cli, home: Path) -> None:
    recorded = record(program, cli, home, "a.jsonl.gz")
    assert record(program, cli, home, "b.jsonl.gz") != recorded, "a program that never differs shows nothing"
    for _ in range(REPLAYS):
        replayed = cli.run("replay", "a.jsonl.gz")
        assert (replayed.returncode, replayed.stdout) == (0, recorded), replayed.stderr
        assert " 0 violations" in replayed.stderr
        assert "drift" not in replayed.stderr


def test_requests_say_who_made_them_and_the_provider_does_not_hear_it(cli: Cli, home: Path) -> None:
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        argv = [sys.executable, str(PROGRAMS / "threads_and_tasks.py")]
        assert cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv).returncode == 0
        assert not any("tapeproxy" in name.lower() for request in provider.requests for name, _ in request.headers)
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    lanes = {exchange.request.lane for exchange in tape.exchanges}
    assert len(lanes) == 4
    assert all(lane is not None and lane.startswith("m/") for lane in lanes)
    assert {lane.id for lane in tape.lanes} >= lanes
    assert not any(path.name.endswith("sidecar") or "sidecar-" in path.name for path in cli.cwd.iterdir())


def test_back_off_costs_nothing_in_a_replay(cli: Cli, home: Path) -> None:
    """The virtual clock says that seconds passed; the supervisor's own says that they did not."""
    recorded = record("retries", cli, home, "t.jsonl.gz")
    waited = float(recorded.splitlines()[1])
    replayed = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    assert replayed.stdout == recorded
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert [e.response.status for e in tape.exchanges if e.response] == [503, 503, 503, 200]
    assert waited > 1.0


def test_without_the_shim_the_clock_is_the_agent_s_own(cli: Cli, home: Path) -> None:
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        argv = [sys.executable, "-c", "import time; print(time.time())"]
        assert cli.run("record", "--no-shim", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv).returncode == 0
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert (tape.head.seed, tape.clocks) == (None, [])
    assert cli.run("replay", "t.jsonl.gz").returncode == 0
