"""`tapeproxy repair` on what a killed recorder really leaves: a tape without a seal, and sidecar files beside it."""

import json
import subprocess
import sys
from pathlib import Path

from clirun import Cli, maps

from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

# After the request it reads the clock, which no later request brings onto the tape.
AGENT = """
import sys, threading, time, httpx
print(httpx.get("https://search.example.com/search?q=tide", timeout=30).status_code, flush=True)
for _ in range(3):
    time.sleep(0.001)
    time.time()
threading.Thread(target=time.time, name="late").start()
print("read", flush=True)
sys.stdin.read()
"""


def killed(cli: Cli, provider: FakeProvider) -> Path:
    """The tape of a recorder that was killed once its agent had read the clock."""
    (cli.cwd / "agent.py").write_text(AGENT)
    command = ["record", "-o", "t.jsonl.gz", *maps(provider.url), "--", sys.executable, "agent.py"]
    running = cli.start(*command, stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert [running.stdout.readline() for _ in range(2)] == ["200\n", "read\n"]
    running.kill()
    running.communicate(timeout=30)
    return cli.cwd / "t.jsonl.gz"


def test_a_killed_recorder_s_tape_is_closed_says_so_and_replays(cli: Cli, provider: FakeProvider) -> None:
    tape = killed(cli, provider)
    before, _ = load(tape)
    assert [path.is_dir() for path in cli.cwd.glob("t.jsonl.gz.sidecar-*")] == [True]
    done = cli.run("repair", "t.jsonl.gz")
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("tapeproxy: repaired: t-repaired.jsonl.gz\n")
    assert "added from its sidecar files" in done.stderr
    after, ending = load(cli.cwd / "t-repaired.jsonl.gz")
    assert ending.canonical
    assert len(after.clocks) > len(before.clocks)
    assert {lane.name for lane in after.lanes} - {lane.name for lane in before.lanes} == {"late"}
    assert tape.exists()

    verified = json.loads(cli.run("verify", "--json", "t-repaired.jsonl.gz").stdout)
    assert (verified["finding"], verified["outcome"]) == ("intact", "repaired")
    assert "the recording was interrupted" in verified["what"]
    assert cli.run("show", "t-repaired.jsonl.gz").stdout.splitlines()[1].endswith(", repaired, sealed")
    replayed = cli.run("replay", "t-repaired.jsonl.gz", input="")
    assert (replayed.returncode, replayed.stdout) == (0, "200\nread\n"), replayed.stderr
    assert "a repaired one, of an interrupted recording" in replayed.stderr

    again = cli.run("repair", "t-repaired.jsonl.gz")
    assert (again.returncode, again.stderr) == (0, "tapeproxy: nothing to do: t-repaired.jsonl.gz has a seal\n")
    refused = cli.run("repair", "t.jsonl.gz")
    assert (refused.returncode, "exists already" in refused.stderr) == (2, True)


def test_in_place_leaves_one_file(cli: Cli, provider: FakeProvider) -> None:
    tape = killed(cli, provider)
    assert cli.run("repair", "--in-place", "t.jsonl.gz").returncode == 0
    assert load(tape)[1].canonical
    assert sorted(path.name for path in cli.cwd.iterdir()) == ["agent.py", "t.jsonl.gz"]


def test_output_and_in_place_are_two_places(cli: Cli) -> None:
    done = cli.run("repair", "--in-place", "-o", "x", "t.jsonl.gz")
    assert (done.returncode, "two places" in done.stderr) == (2, True)
