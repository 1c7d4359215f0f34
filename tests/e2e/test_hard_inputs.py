"""Hard inputs from bug reports of tools like this one, through the command line: recorded once, replayed twice."""

import base64
import hashlib
import json
import ssl
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load

PROGRAM = Path(__file__).parent / "programs" / "odd_requests.py"
AT_ONCE = 4


class Tool(BaseHTTPRequestHandler):
    """Says what it got and how many requests that makes, so no two answers are the same."""

    protocol_version = "HTTP/1.1"
    numbers = count(1)
    turns = threading.Condition()
    waiting: set[int]

    def do_GET(self) -> None:
        query = urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)
        if self.path.startswith("/slow"):
            self._wait_for_the_later_ones(int(dict(query)["n"]))
        self._say({"n": dict(query).get("n"), "query": query})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._say({"sha": hashlib.sha256(body).hexdigest()[:8], "start": base64.b64encode(body[:6]).decode()})

    def _wait_for_the_later_ones(self, n: int) -> None:
        with self.turns:
            self.waiting.add(n)
            self.turns.notify_all()
            later = set(range(n + 1, AT_ONCE))
            assert self.turns.wait_for(lambda: len(self.waiting) == AT_ONCE or n not in self.waiting, 20)
            assert self.turns.wait_for(lambda: later <= self.answered, 20)

    answered: set[int]

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


@pytest.fixture
def tool(home: Path) -> Iterator[str]:
    """A tool server over TLS; its address."""
    Tool.waiting, Tool.answered = set(), set()
    with ThreadingHTTPServer(("127.0.0.1", 0), Tool) as server:
        context: ssl.SSLContext = CertificateAuthority.open(home).server_context("127.0.0.1")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("shim", [[], ["--no-shim"]], ids=["shim", "no shim"])
def test_requests_that_are_hard_to_know_again(cli: Cli, tool: str, shim: list[str]) -> None:
    """Cases 4, 18, 19, 20, 21 and 35: without the shim boundaries and key orders are others in every run."""
    argv = [sys.executable, str(PROGRAM)]
    recorded = cli.run("record", "-o", "t.jsonl.gz", *shim, *maps(tool), "--", *argv)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.count(" True ") == AT_ONCE
    assert recorded.stdout.count(" 200 ") == 12
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    ends = [e.end.t for e in tape.exchanges if b"n=" in e.request.url and e.end]
    asked = [e.request.url.partition(b"n=")[2][:1] for e in tape.exchanges if b"n=" in e.request.url]
    assert [n for _, n in sorted(zip(ends, asked, strict=True))] == [b"3", b"2", b"1", b"0"]
    replayed = cli.run("replay", "t.jsonl.gz")
    assert "violation" not in replayed.stderr.replace(" 0 violations", "")
    if not shim:
        assert replayed.stdout == recorded.stdout
    assert replayed.returncode == 0, replayed.stderr
