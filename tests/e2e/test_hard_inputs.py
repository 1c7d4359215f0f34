"""Hard inputs from bug reports of tools like this one, through the command line: recorded, then replayed."""

import base64
import gzip
import hashlib
import json
import re
import shutil
import socket
import ssl
import struct
import sys
import threading
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard
from clirun import Cli, maps
from programruns import record, replay, soak_python

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.records import Head, Request, Response

PROGRAM = Path(__file__).parent / "programs" / "odd_requests.py"
CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
AT_ONCE = 4
SLOW = b"https://search.example.com/slow"


class Tool(BaseHTTPRequestHandler):
    """Says what it got and how many requests that makes, so no two answers are the same."""

    protocol_version = "HTTP/1.1"
    numbers = count(1)
    turns = threading.Condition()
    answered: set[int]
    failures: list[bool]

    def do_GET(self) -> None:
        query = urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)
        if self.path.startswith("/slow"):
            self._wait_for_the_later_ones(int(dict(query)["n"]))
        if self.path == "/flaky" and self.failures.pop():
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/there")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._say({"n": dict(query).get("n"), "query": query})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._say({"sha": hashlib.sha256(body).hexdigest()[:8], "start": base64.b64encode(body[:6]).decode()})

    def _wait_for_the_later_ones(self, n: int) -> None:
        with self.turns:
            assert self.turns.wait_for(lambda: self.answered >= set(range(n + 1, AT_ONCE)), 20)

    def _say(self, what: dict[str, object]) -> None:
        body = json.dumps({**what, "number": next(self.numbers), "price": "0.00"}).encode()
        self.send_response(200)
        coding = self.path.partition("coding=")[2]
        if coding in CODERS:
            body = CODERS[coding](body)
            self.send_header("Content-Encoding", coding)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path.startswith("/slow"):
            with self.turns:
                self.answered.add(int(str(what["n"])))
                self.turns.notify_all()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Closes a connection and does not shut it down before, so that it can be reset."""

    def shutdown_request(self, request: Any) -> None:
        self.close_request(request)


@pytest.fixture
def tool(home: Path) -> Iterator[str]:
    """A tool server over TLS; its address."""
    Tool.answered, Tool.failures = set(), [False, True]
    with Server(("127.0.0.1", 0), Tool) as server:
        context: ssl.SSLContext = CertificateAuthority.open(home).server_context("127.0.0.1")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_requests_that_are_hard_to_know_again(cli: Cli, tool: str) -> None:
    """Cases 4, 18, 19, 20, 21, 25, 30 and 35: without a shim, boundaries and key orders are others in every run."""
    argv = [sys.executable, str(PROGRAM)]
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--no-shim", *maps(tool), "--", *argv)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.count(" True ") == AT_ONCE
    assert recorded.stdout.count(" 200 ") == 14
    assert re.findall(r"(?m)^retry \w+", recorded.stdout) in (
        ["retry ReadError", "retry 200"],
        ["retry RemoteProtocolError", "retry 200"],
    )
    assert re.findall(r"(?m)^moved \d+", recorded.stdout) == ["moved 302"]
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    slow = [json.loads(e.response_body) for e in tape.exchanges if e.request.url.startswith(SLOW)]
    assert [said["n"] for said in sorted(slow, key=lambda said: said["number"])] == ["3", "2", "1", "0"]
    replayed = cli.run("replay", "t.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


def test_requests_that_are_the_same_in_other_bytes(cli: Cli, tool: str) -> None:
    """Cases 1, 3, 5, 6, 7, 16, 18, 22 and 35, without a shim: nothing but what requests ask tells them apart."""
    argv = [sys.executable, str(PROGRAM.with_name("odd_bodies.py"))]
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--no-shim", *maps(tool), "--", *argv)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.count(" 200 ") == len(recorded.stdout.splitlines()) == 31
    replayed = cli.run("replay", "t.jsonl.gz", "--require-all")
    # The server says what it was asked, and the id of the key in that is on no tape.
    heard = re.sub(r"tpx[a-z2-7]{17}", "AKIAIOSFODNN7EXAMPLE", replayed.stdout)
    assert (replayed.returncode, heard) == (0, recorded.stdout), replayed.stderr
    assert cli.run("verify", "t.jsonl.gz").returncode == 0


@pytest.mark.parametrize("shim", [[], ["--no-shim"]])
def test_another_machine_says_other_things_of_itself(
    cli: Cli, tool: str, shim: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Another folder, home, TMPDIR, port and (where there is one) Python do not defeat a match."""
    program = str(PROGRAM.with_name("machine.py"))
    homes = [tmp_path_factory.mktemp(name) for name in ("ada", "runner-of-ci")]
    recording = Cli(homes[0], cli.home)
    recorded = recording.run(
        "record", "-o", str(cli.cwd / "t.jsonl.gz"), *shim, *maps(tool), "--", sys.executable, program,
        env={"HOME": str(homes[0] / "home")},
    )  # fmt: skip
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.count("\n") == 3
    env = {"HOME": str(homes[1]), "TMPDIR": str(homes[1])}
    # What Python the agent has is known where the shim is in it.
    for python in (sys.executable, *([] if shim else [another_python()])):
        there = Cli(homes[1], cli.home)
        replayed = there.run("replay", str(cli.cwd / "t.jsonl.gz"), *shim, "--", python, program, env=env)
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    (note,) = [note for note in load(cli.cwd / "t.jsonl.gz")[0].notes if note.what == "machine"]
    assert {"cwd", "home", "tmpdir", "python", "platform"} <= note.data.keys()


def another_python() -> str:
    """A Python of another version that has what is needed; our own where there is none."""
    for version in ("3.11.7", "3.13.0"):
        found = Path.home() / ".pyenv" / "versions" / version / "bin" / "python"
        if found.exists():
            return str(found)
    return sys.executable


BIG = """
import shutil, subprocess, sys, urllib.error, urllib.request
import httpx, requests
url, body = "https://search.example.com/big", b"x" * (3 << 20)
print(httpx.get("https://search.example.com/a").status_code)
if sys.argv[1:]:
    print("httpx", httpx.post(url, content=body).json()["violation"]["kind"])
    print("requests", requests.post(url, data=body, timeout=30).json()["violation"]["kind"])
    try:
        urllib.request.urlopen(urllib.request.Request(url, body))
    except urllib.error.HTTPError as error:
        print("urllib", error.code, b"violation" in error.read())
    if shutil.which("curl"):
        answer = subprocess.run(["curl", "-s", "--data-binary", "@-", url], input=body, capture_output=True, check=True)
        print("curl", b"violation" in answer.stdout)
"""


def test_a_large_request_that_is_a_violation_is_answered_whole(cli: Cli, tool: str) -> None:
    """Case 32: every client can read the answer to 3 MB that are not on the tape."""
    (cli.cwd / "agent.py").write_text(BIG)
    agent = [sys.executable, "agent.py"]
    recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(tool), "--", *agent)
    assert (recorded.returncode, recorded.stdout) == (0, "200\n"), recorded.stderr
    replayed = cli.run("replay", "t.jsonl.gz", "--", *agent, "big")
    assert replayed.returncode == 3
    heard = ["200", "httpx miss", "requests miss", "urllib 470 True"]
    assert replayed.stdout.splitlines() == heard + (["curl True"] if shutil.which("curl") else [])


RANDOM = """
import httpx, sys, uuid
for n in range(3):
    ask = {"n": n % 2, "meta": {"request_id": uuid.uuid4().hex, "pad": "x" * len(sys.argv) * n}}
    print(httpx.post("https://search.example.com/chat?ts=" + uuid.uuid4().hex, json=ask, timeout=30).text)
"""


def test_rules_are_taped_and_replays_keep_to_them(cli: Cli, tool: str) -> None:
    (cli.cwd / "agent.py").write_text(RANDOM)
    (cli.cwd / "tapeproxy.toml").write_text('ignore-query = ["ts"]\n')
    agent = ["--", sys.executable, "agent.py"]
    rule = ["--ignore-json", "search.example.com/chat: $.meta"]
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--no-shim", *rule, *maps(tool), *agent)
    assert recorded.returncode == 0, recorded.stderr
    (cli.cwd / "tapeproxy.toml").unlink()
    for words in ([], ["x", "y"]):  # more words make longer bodies
        replayed = cli.run("replay", "t.jsonl.gz", "--report", "r.json", *agent, *words)
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    rules = ["ignore-query ts", "ignore-json search.example.com/chat: $.meta"]
    assert json.loads((cli.cwd / "r.json").read_text())["rules"] == [{"rule": one, "matched": True} for one in rules]
    without = cli.run("replay", "t.jsonl.gz", "--no-taped-rules", *agent)
    assert without.returncode == 3
    assert "query ts" in without.stderr
    again = cli.run("replay", "t.jsonl.gz", "--no-taped-rules", *rule, "--ignore-query", "t*", *agent)
    assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
    assert cli.run("verify", "t.jsonl.gz").returncode == 0
    bad = cli.run("replay", "t.jsonl.gz", "--ignore-json", "meta", *agent)
    assert bad.returncode == 2
    assert "ignore-json: a JSON path begins with $" in bad.stderr


def test_34_a_clamped_clock_with_the_libraries_that_agents_use(cli: Cli) -> None:
    """Case 34: what depends on time or chance is the same in a replay, in child processes too."""
    argv = [sys.executable, str(PROGRAM.with_name("clocks.py"))]
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--", *argv)
    assert recorded.returncode == 0, recorded.stderr
    assert [line.split()[0] for line in recorded.stdout.splitlines()].count("waited") == 2
    assert len(recorded.stdout.splitlines()) == 10
    replayed = cli.run("replay", "t.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


def test_signed_requests_have_the_right_time_and_the_same_in_a_replay(cli: Cli, home: Path) -> None:
    python, before = soak_python(), datetime.now(UTC)
    recorded = record("signing", cli, home, "t.jsonl.gz", python=python)
    after = datetime.now(UTC)
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    for exchange in tape.exchanges:
        (stamp,) = [value.decode() for name, value in exchange.request.headers if name.lower() == b"x-amz-date"]
        signed = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        assert before - timedelta(seconds=1) <= signed <= after
    assert len(tape.exchanges) == 2
    assert replay(cli, "t.jsonl.gz") == recorded


def test_a_tape_with_a_url_that_is_none_is_refused_with_the_exchange_s_number(cli: Cli) -> None:
    encoder = TapeEncoder(Head(started_at="2026-01-01T00:00:00Z"))
    encoder.add(Request(t=0, method=b"GET", url=b"nonsense", headers=(), body=b""))
    encoder.add(Response(t=0, of=1, status=200))
    (cli.cwd / "t.jsonl.gz").write_bytes(encoder.flush() + encoder.seal(t=1, trace="", outcome="exited"))
    done = cli.run("replay", "t.jsonl.gz", "--", sys.executable, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (5, "")
    assert "exchange 1: not an absolute URL: 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr
