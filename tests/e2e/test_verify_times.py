"""`verify --times` of whole programs, with the shim: what is the same every time, and what gives itself away."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.testing import FakeProvider

AGENT = """
import os, random, sys, threading, time, urllib.request, uuid

def ask(query):
    url = f"https://search.example.com/search?q={query}"
    request = urllib.request.Request(url, headers={"x-request-id": str(uuid.uuid4())})
    return urllib.request.urlopen(request, timeout=30).status

threads = [threading.Thread(target=ask, args=(f"thread-{n}",)) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(ask("tide"), uuid.uuid4(), time.time(), random.random())

def once_before(name="before"):
    if os.path.exists(name):
        return True
    open(name, "w").close()
    return False

"""


@pytest.fixture
def verify(cli: Cli, provider: FakeProvider) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Record the agent, then verify replays of it with `more` code at its end."""
    (cli.cwd / "agent.py").write_text(AGENT)
    recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", sys.executable, "agent.py")
    assert recorded.returncode == 0, recorded.stderr

    def run(*words: str, more: str = "") -> subprocess.CompletedProcess[str]:
        (cli.cwd / "agent.py").write_text(AGENT + more)
        return cli.run("verify", "t.jsonl.gz", *words)

    return run


type Verify = Callable[..., subprocess.CompletedProcess[str]]


def test_a_program_that_the_shim_holds_is_identical_every_time(verify: Verify) -> None:
    done = verify("--times", "5", "--json")
    assert done.returncode == 0, done.stdout
    assert done.stderr == "" or "guard" in done.stderr
    given = json.loads(done.stdout)
    assert (given["identical"], given["as_sealed"], given["difference"]) == (5, True, None)
    assert {run["report"]["trace"] for run in given["runs"]} == {given["trace"]}
    assert all(run["report"]["exit_code"] == 0 for run in given["runs"])


def test_without_the_shim_it_is_not(verify: Verify) -> None:
    """Its clock, its identifiers and their header are its own: the request is what went another way first."""
    done = verify("--times", "2", "--no-shim")
    assert done.returncode == 4
    assert "identical replays: 1/2" in done.stdout
    assert re.search(r"replay 2: request \d without a lane, exchange \d, was sent otherwise", done.stdout)
    assert re.search(r"  header x-request-id\n    replay 1: \w{8}-.*\n    replay 2: \w{8}-", done.stdout)
    assert "  stdout differs too" in done.stdout


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        ("print(os.getpid())", 4, r"replay 2: stdout differs at line 2\n  stdout, line 2\n    replay 1: \d+\n"),
        (
            "if once_before(): ask('more')",
            3,
            r"replay 2: violation: this request is not on the tape\n.*\n    nearest: .*\n.*\n      query q\n",
        ),
        (
            "if once_before(): os.kill(os.getpid(), 11)\nprint('whole')",
            4,
            # What it had printed was still in its buffer.
            r"replay 2: stdout differs at line 1\n(.*\n){3}  exit\n    replay 1: exit 0\n    replay 2: killed by SIG",
        ),
        (
            "print(('x' * 99 + chr(10)) * 20000 + str(os.getpid()))",
            4,
            r"replay 2: stdout differs after its first 1048576 bytes, and no more of it is kept\n",
        ),
        (
            # A file in TMPDIR that lived on would have the next replay choose another name.
            "import tempfile; print(tempfile.mkstemp()[1])",
            0,
            r"identical replays: 2/2\n",
        ),
    ],
    ids=["pid", "a counter file", "crash", "over the bound", "temporary files"],
)
def test_what_gives_itself_away(verify: Verify, more: str, code: int, told: str) -> None:
    done = verify("--times", "2", "--on-drift", "report", more=more)
    assert done.returncode == code, done.stdout
    assert re.search(told, done.stdout), done.stdout


def test_ctrl_c_says_how_far_it_came(verify: Verify, cli: Cli, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # Not signal.pause(): the signal may come just before it.
    wait = "[select.select([], [], [], 0.05) for _ in range(1200)]"
    # Not a file: CPython drops a KeyboardInterrupt that comes while it closes one that nobody holds.
    more = f"import select\nif once_before(): os.write(os.open({str(fifo)!r}, os.O_WRONLY), b'here'); {wait}"
    (cli.cwd / "agent.py").write_text(AGENT + more)
    running = cli.start("verify", "t.jsonl.gz", "--times", "9")
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - a descriptor has no path
        assert select.select([file], [], [], 60)[0]
        running.send_signal(signal.SIGINT)
        stdout, _ = running.communicate(timeout=60)
    assert running.returncode == 130, stdout
    assert "identical replays: 1/1\n  stopped after 1 of 9\n" in stdout
    assert verify("--times", "1").returncode == 0
