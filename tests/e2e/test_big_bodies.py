"""Half a gigabyte either way, and memory stays where it was: recording, and serving it from a tape."""

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from authority import Authority
from clirun import Cli
from origin import Call as Call1
from origin import Origin
from origin2 import Call, Origin2

SIZE = 500 << 20
PIECE = 1 << 20
MOST = 160
"""MiB that a process of ours may take: 60 of it are Python and what is imported."""

AGENT = f"""
import sys, httpx
def pieces():
    for _ in range({SIZE // PIECE}):
        yield b"x" * {PIECE}
with httpx.Client(http2=sys.argv[2] == "h2", timeout=300) as client:
    up = {{"content": pieces(), "headers": {{"content-length": "{SIZE}"}}}} if sys.argv[3] == "up" else {{}}
    with client.stream("POST" if up else "GET", sys.argv[1], **up) as reply:
        print(reply.http_version, sum(map(len, reply.iter_raw())))
"""


async def answer2(call: Call) -> None:
    while await call.pieces.get() is not None:
        pass
    await call.head(200)
    if call.method == "GET":
        for number in range(SIZE // PIECE):
            await call.data(bytes([number % 251]) * PIECE)
    await call.data(b"end", end=True)


class Drain(BaseHTTPRequestHandler):
    """An upload in HTTP/1.1: nobody keeps it, for a process that is started has the memory of who started it."""

    def do_POST(self) -> None:
        left = int(self.headers["content-length"])
        while left:
            left -= len(self.rfile.read(min(left, PIECE)))
        self.send_response(200)
        self.send_header("content-length", "3")
        self.end_headers()
        self.wfile.write(b"end")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def draining(tls: ssl.SSLContext) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Drain) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def serving(version: str, way: str, tls: ssl.SSLContext) -> Iterator[str]:
    if version == "h1" and way == "up":
        with draining(tls) as url:
            yield url
        return
    with Origin2(answer2, tls) if version == "h2" else Origin(answer1, tls=tls) as origin:
        yield origin.url


async def answer1(call: Call1) -> None:
    await call.head("200 OK", "Transfer-Encoding: chunked")
    for number in range(SIZE // PIECE):
        await call.chunk(bytes([number % 251]) * PIECE)
    await call.last_chunk()


def measured(cli: Cli, *words: str) -> tuple[str, int]:
    """What a command printed, and the most memory that it or its agent had, in MiB. It has to go well."""
    out = cli.cwd / "out.txt"
    with out.open("w") as file:
        process = cli.start(*words, stdout=file, stderr=file)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, out.read_text()
    return out.read_text(), usage.ru_maxrss >> 10


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
@pytest.mark.parametrize(("version", "way"), [("h1", "down"), ("h2", "down"), ("h1", "up"), ("h2", "up")])
def test_half_a_gigabyte(cli: Cli, authority: Authority, version: str, way: str) -> None:
    (cli.cwd / "agent.py").write_text(AGENT)
    tls = authority.serving("127.0.0.1")
    with serving(version, way, tls) as url:
        argv = (sys.executable, "agent.py", url, version, way)
        heard, memory = measured(
            cli, "record", "--no-shim", "-o", "t.tape.jsonl.gz", "--upstream-ca", str(authority.cert), "--", *argv
        )
    assert memory < MOST
    again, memory = measured(cli, "replay", "t.tape.jsonl.gz")
    assert again.splitlines()[1] == heard.splitlines()[0]
    assert memory < MOST
