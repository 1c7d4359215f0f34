"""Lanes that come another way than on the tape: what is forgiven, what is not, and that both are told."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

PROGRAMS = Path(__file__).parent / "programs"


def record(cli: Cli, home: Path, *argv: str) -> str:
    """Record a program against a provider of its own; returns what it printed."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        done = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


SOAKED = pytest.mark.soak


@pytest.mark.parametrize(
    ("kind", "taped", "now"),
    [
        ("threads", "3 1 4 2", "3 1 4 2"),
        ("threads", "5 2 6 4", "1 1 1 1"),
        pytest.param("threads", "1 1 1 1", "9 5 7 8", marks=SOAKED),
        pytest.param("threads", "3 2 2 2", "0 0 0 0", marks=SOAKED),
        pytest.param("threads", "0 0 0 0", "3 1 2 4", marks=SOAKED),
        ("threads", "4 1 4 0", "2 9 0 9"),
        pytest.param("tasks", "3 1 4 2", "3 1 4 2", marks=SOAKED),
        ("tasks", "5 2 6 4", "1 1 1 1"),
        pytest.param("tasks", "1 1 1 1", "9 5 7 8", marks=SOAKED),
        pytest.param("tasks", "3 2 2 2", "0 0 0 0", marks=SOAKED),
        pytest.param("tasks", "0 0 0 0", "3 1 2 4", marks=SOAKED),
        pytest.param("tasks", "4 1 4 0", "2 9 0 9", marks=SOAKED),
    ],
)
def test_a_poll_may_go_another_number_of_rounds(kind: str, taped: str, now: str, cli: Cli, home: Path) -> None:
    """What is asked after it has the tape's time in it, all the same."""
    rounds = cli.cwd / "rounds"
    rounds.write_text(taped)
    recorded = record(cli, home, sys.executable, str(PROGRAMS / "polls.py"), str(rounds), kind)
    rounds.write_text(now)
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    assert (done.returncode, done.stdout) == (0, recorded), done.stderr
    report = json.loads((cli.cwd / "r.json").read_text())
    assert report["drifts"] == []
    soft = [note for note in report["notes"] if note.startswith("soft divergence: ")]
    assert len(soft) == (taped != now), report["notes"]
    assert all(note in done.stderr for note in soft)


SHIFTED = """
import sys, time
from pathlib import Path
from urllib.request import urlopen
reads, late = map(int, Path(sys.argv[1]).read_text().split())
for n in range(2):
    time.sleep(0.01)
    urlopen(f"https://search.example.com/search?q={n}").read()
for _ in range(reads): time.time()
urlopen("https://search.example.com/search?q=3").read()
def after():
    for _ in range(late): time.time()
after()
"""


def replay_shifted(cli: Cli, home: Path, now: str, *options: str) -> tuple[int, str, dict[str, list[object]]]:
    """Record with 1 read before the last request and 2 after it, replay with others: exit code, stderr, report."""
    counts = cli.cwd / "counts"
    counts.write_text("1 2")
    record(cli, home, sys.executable, "-c", SHIFTED, str(counts))
    counts.write_text(now)
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json", *options)
    return done.returncode, done.stderr, json.loads((cli.cwd / "r.json").read_text())


def test_after_a_poll_and_a_request_positions_are_hard_again(cli: Cli, home: Path) -> None:
    code, stderr, report = replay_shifted(cli, home, "2 1")
    assert code == 4
    assert "drift: lane m came another way" in stderr
    (drift,) = report["drifts"]
    assert isinstance(drift, dict)
    assert "came another way to the request of exchange 3" in drift["what"]
    assert [found["where"] for found in drift["differences"]] == ["clock reads before it"]


@pytest.mark.parametrize(("options", "code"), [((), 4), (("--on-drift", "report"), 0)])
def test_reads_past_the_end_are_counted_and_placed(options: tuple[str, ...], code: int, cli: Cli, home: Path) -> None:
    ended, stderr, report = replay_shifted(cli, home, "1 7", *options)
    assert ended == code
    (drift,) = report["drifts"]
    assert isinstance(drift, dict)
    assert "lane m read its clock 5 times after the " in drift["what"]
    assert "first at <string>:12 in after" in drift["what"]
    assert "those were live values" in stderr
    assert "1 drift" in stderr
