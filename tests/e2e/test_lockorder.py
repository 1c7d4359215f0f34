"""`--threads`: a program whose threads race is the same in every replay, and a turn that can't come is a drift."""

import json
import sys
import textwrap
from pathlib import Path

from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

RACES = Path(__file__).parent / "programs" / "races.py"
REPLAYS = 2
# Which thread comes first is up to an environment variable: so a replay can be made to stray from its tape.
STRAYING = textwrap.dedent(
    """
    import os, threading
    lock = threading.Lock()
    def work():
        with lock:
            print("worked")
    threads = [threading.Thread(target=work) for _ in range(int(os.environ.get("THREADS", "2")))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """
)


def record(cli: Cli, home: Path, tape: str, *options: str) -> str:
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        done = cli.run("record", *options, "-o", tape, *maps(provider.url), "--", sys.executable, str(RACES))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_race_ends_the_same_way_in_every_replay(cli: Cli, home: Path) -> None:
    recorded = record(cli, home, "a.jsonl.gz", "--threads")
    assert record(cli, home, "b.jsonl.gz", "--threads") != recorded, "a program that never differs shows nothing"
    tape, _ = load(cli.cwd / "a.jsonl.gz")
    assert tape.head.threads
    assert {edge.what for edge in tape.edges if edge.asked is None} <= {"acquired", "refused"}
    for _ in range(REPLAYS):
        replayed = cli.run("replay", "a.jsonl.gz")
        assert (replayed.returncode, replayed.stdout) == (0, recorded), replayed.stderr
        assert "drift" not in replayed.stderr


def test_without_the_option_no_order_is_taped_and_none_can_be_asked_for(cli: Cli, home: Path) -> None:
    record(cli, home, "t.jsonl.gz")
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert not tape.head.threads
    assert not [edge for edge in tape.edges if edge.asked is None]
    asked = cli.run("replay", "--threads", "t.jsonl.gz")
    assert asked.returncode == 2
    assert "no order of locks" in asked.stderr
    assert "record --threads" in asked.stderr


def test_the_option_needs_the_shim(cli: Cli) -> None:
    for words in (("record", "--threads", "--no-shim", "--", "true"), ("replay", "--threads", "--no-shim", "t.gz")):
        done = cli.run(*words)
        assert done.returncode == 2, done.stderr


def test_a_turn_that_cannot_come_is_one_drift_and_the_run_goes_on(cli: Cli) -> None:
    argv = [sys.executable, "-c", STRAYING]
    assert cli.run("record", "--threads", "-o", "t.jsonl.gz", "--", *argv).returncode == 0
    replayed = cli.run("replay", "--report", "r.json", "t.jsonl.gz", env={"THREADS": "3"})
    assert (replayed.returncode, replayed.stdout) == (4, "worked\n" * 3)
    (drift,) = json.loads((cli.cwd / "r.json").read_text())["drifts"]
    assert "the lock made at <string>:3" in drift["what"]
    assert "waiting: lane m/t2 at <string>:5 in work" in drift["what"]
    freely = cli.run("replay", "--no-threads", "t.jsonl.gz", env={"THREADS": "3"})
    assert (freely.returncode, freely.stdout) == (0, "worked\n" * 3), freely.stderr
