"""Hard inputs from bug reports of tools like this one, through the command line: recorded, then replayed."""

import base64
import hashlib
import json
import re
import socket
import ssl
import struct
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from clirun import Cli, maps
from programruns import record, replay, soak_python

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.records import Head, Request, Response

PROGRAM = Path(__file__).parent / "programs" / "odd_requests.py"
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


def test_a_clamped_clock_with_the_libraries_that_agents_use(cli: Cli) -> None:
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
