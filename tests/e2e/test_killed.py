"""An agent that is killed with SIGKILL: everything up to its last request and clock read is on the tape."""

import os
import signal
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.testing import FakeProvider

SLOW = {"reply": [{"when": {"user": "slow"}, "delay_ms": 60_000}], "gap_ms": [30, 40]}
HEAD = """
import json, os, random, signal, subprocess, sys, threading, time, urllib.parse, urllib.request, uuid

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def search(text):
    query = urllib.parse.urlencode({"q": f"{text} {time.time()} {uuid.uuid4()} {random.random()}"})
    with urllib.request.urlopen(f"https://search.example.com/search?{query}", timeout=30) as reply:
        return reply.read().decode()

def chat(text, stream):
    body = {"model": "gpt-4o", "stream": stream, "messages": [{"role": "user", "content": f"{text} {time.time_ns()}"}]}
    head = {"content-type": "application/json"}
    url = "https://api.openai.com/v1/chat/completions"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head), timeout=30)

say(time.time(), uuid.uuid4())
"""
POINTS = {
    "after an answer": "say(search('a')); say(search('b')); die()",
    "after a clock read": "say(search('a')); time.sleep(0.02); say(time.time(), time.monotonic()); die()",
    "after many clock reads": "[time.perf_counter() for _ in range(50_000)]; say(time.time_ns()); die()",
    "in a stream": "reply = chat('go', True); say(reply.readline()); say(reply.readline()); die()",
    "before an answer": """
from http.client import HTTPConnection
real = HTTPConnection.getresponse
def getresponse(self, *args):
    if b"slow" in asked: self.sock.settimeout(1)
    try: return real(self, *args)
    except TimeoutError: die()
HTTPConnection.getresponse = getresponse
asked = b""; say(search('a'))
asked = b"slow"; chat('slow', False)
""",
    "in a thread": "thread = threading.Thread(target=lambda: (say(search('a')), die())); thread.start(); thread.join()",
    "a child": """
child = subprocess.run([sys.executable, "-c", os.environ["AGENT"] + "\\nsay(search('child')); die()"])
say(child.returncode, search('after'), time.time())
""",
}
EXCHANGES = {"after an answer": 2, "after many clock reads": 0, "before an answer": 2, "a child": 2}
GONE = {"in a stream", "before an answer"}


def run(cli: Cli, home: Path, code: str) -> tuple[int, str]:
    """Record a program; gives the exit code and what it printed."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=SLOW, tls=tls) as provider:
        argv = [sys.executable, "-c", HEAD + code]
        done = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv, env={"AGENT": HEAD})
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def whole(path: Path, outcome: str = "killed") -> Tape:
    """The tape, which must be sealed and unchanged."""
    tape, verdict = load(path)
    assert verdict.canonical
    assert tape.seal is not None
    assert tape.seal.outcome == outcome
    return tape


@pytest.mark.parametrize("point", POINTS)
def test_what_came_before_the_kill_is_on_the_tape(point: str, cli: Cli, home: Path) -> None:
    code, said = run(cli, home, POINTS[point])
    expected = 0 if point == "a child" else 128 + signal.SIGKILL
    assert code == expected
    tape = whole(cli.cwd / "t.jsonl.gz", "exited" if point == "a child" else "killed")
    assert tape.exit is not None
    assert tape.exit.signal == (None if point == "a child" else "SIGKILL")
    assert len(tape.exchanges) == EXCHANGES.get(point, 1)
    ends = [exchange.end.how if exchange.end else None for exchange in tape.exchanges]
    assert ends == ["complete"] * (len(ends) - (point in GONE)) + ["client-gone"] * (point in GONE)
    replayed = cli.run("replay", "t.jsonl.gz", env={"AGENT": HEAD})
    assert (replayed.returncode, replayed.stdout) == (expected, said), replayed.stderr
    assert " 0 violations" in replayed.stderr
    assert "drift" not in replayed.stderr


FOR_EVER = """
for n in range(100_000):
    if n == 0: say("pid", os.getpid())
    say(n, time.time(), time.perf_counter_ns())
    if n % 3 == 0: say("heard", json.loads(search(n))["query"])
    if n % 5 == 0: time.sleep(random.random() / 100)
    if n % 7 == 0:
        with chat(n, True) as reply: say("heard", reply.read(99))
"""


@pytest.mark.parametrize("lines", [3, 40, 90])
def test_a_kill_at_any_time_loses_nothing_that_was_seen(lines: int, cli: Cli, home: Path) -> None:
    """Killed from outside after so many lines, wherever it is by then.

    The replay is not killed: it goes on from there with live values, until a request that is not on the tape.
    """
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"gap_ms": [1, 5]}, tls=tls) as provider:
        agent = HEAD + FOR_EVER
        running = cli.start("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", sys.executable, "-c", agent)
        assert running.stdout is not None
        said = [running.stdout.readline() for _ in range(lines)]
        (pid,) = [int(line.split()[1]) for line in said if line.startswith("pid ")]
        os.kill(pid, signal.SIGKILL)
        rest, errors = running.communicate(timeout=30)
    assert running.returncode == 128 + signal.SIGKILL, errors
    tape = whole(cli.cwd / "t.jsonl.gz")
    said += [line + "\n" for line in rest.split("\n")[:-1]]
    heard = sum(line.startswith("heard ") for line in said)
    assert heard <= len(tape.exchanges) <= heard + 1
    replayed = cli.run("replay", "--max-violations", "1", "t.jsonl.gz").stdout.splitlines(keepends=True)
    mine = [line for line in said if not line.startswith("pid ")]
    assert [line for line in replayed if not line.startswith("pid ")][: len(mine)] == mine
