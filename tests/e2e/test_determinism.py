"""Programs that are different every time they run, and the same in every replay of one tape."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps
from programruns import PROGRAMS, record, replay, soak_python

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

REPLAYS, MANY = 1, 20
TEN = [
    "threads_and_tasks",
    "processes",
    "with_trio",
    "with_uvloop",
    "retries",
    "uploads",
    "with_numpy",
    "with_langgraph",
    "with_pydantic_ai",
    "with_litellm",
]


SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    "program",
    ["threads_and_tasks", pytest.param("retries", marks=SOAK), "processes", pytest.param("uploads", marks=SOAK)],
)
def test_a_replay_is_the_recording_to_the_last_byte(program: str, cli: Cli, home: Path) -> None:
    recorded = record(program, cli, home, "a.jsonl.gz")
    other = record(program, cli, home, "b.jsonl.gz")
    assert other.output != recorded.output, "a program that never differs shows nothing"
    assert [asked[3:] for asked in other.requests] != [asked[3:] for asked in recorded.requests]
    for _ in range(REPLAYS):
        assert replay(cli, "a.jsonl.gz") == recorded
    if program == "retries":  # back-off is on the clock of a replay
        assert float(recorded.output.splitlines()[1]) > 1.0
        tape, _ = load(cli.cwd / "a.jsonl.gz")
        assert [e.response.status for e in tape.exchanges if e.response] == [503, 503, 503, 200]


@pytest.mark.soak
@pytest.mark.parametrize("program", TEN)
def test_twenty_replays_of_each_of_ten_programs(program: str, cli: Cli, home: Path) -> None:
    """In an environment of the agent's own. Two runs without a shim show that the program does differ."""
    python = soak_python()
    bare = [record(program, cli, home, f"{n}.jsonl.gz", "--no-shim", python=python) for n in range(2)]
    assert bare[0].output != bare[1].output
    assert bare[0].requests != bare[1].requests
    recorded = record(program, cli, home, "t.jsonl.gz", python=python)
    for _ in range(MANY):
        assert replay(cli, "t.jsonl.gz") == recorded


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
    assert tape.seal is not None
    assert tape.seal.lanes.keys() == lanes
    assert cli.run("verify", "t.jsonl.gz").returncode == 0
    assert not any(path.name.endswith("sidecar") or "sidecar-" in path.name for path in cli.cwd.iterdir())


@pytest.mark.soak
def test_eight_seconds_of_back_off_cost_nothing(cli: Cli, home: Path) -> None:
    """The virtual clock says that seconds passed; the supervisor's own says that they did not."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    script = {"reply": [{"status": 503, "retry_after": 2.7, "times": 3}, {"text": "Hello."}]}
    with FakeProvider(script=script, tls=tls) as provider:
        argv = [sys.executable, str(PROGRAMS / "retries.py")]
        recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv, keys=True).stdout
    replayed = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    assert replayed.stdout == recorded
    report = json.loads((cli.cwd / "r.json").read_text())
    assert float(recorded.splitlines()[1]) > 8.1
    assert report["took_ns"] < 6e9 < report["taped_ns"]  # nearly all of it is the import of the SDK


def test_without_the_shim_the_clock_is_the_agent_s_own(cli: Cli, home: Path) -> None:
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        argv = [sys.executable, "-c", "import time; print(time.time())"]
        assert cli.run("record", "--no-shim", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv).returncode == 0
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert (tape.head.seed, tape.clocks) == (None, [])
    assert cli.run("replay", "t.jsonl.gz").returncode == 0


def test_what_a_run_leaves_in_its_tmpdir_does_not_move_the_next_one_s_names(cli: Cli, tmp_path: Path) -> None:
    code = "import os, tempfile; print(os.listdir(tempfile.gettempdir()), tempfile.mkstemp()[1], tempfile.mkdtemp())"
    kept = {"TMPDIR": str(tmp_path)}
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "-c", code, env=kept).stdout
    assert recorded.startswith("[] ")
    for _ in range(2):
        assert cli.run("replay", "t.jsonl.gz", env=kept).stdout == recorded
    assert cli.run("verify", "--times", "2", "t.jsonl.gz", env=kept).returncode == 0
    assert all(Path(name).exists() for name in recorded.split()[1:])
