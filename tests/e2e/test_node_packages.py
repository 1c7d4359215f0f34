"""Node's client packages, as they come from npm: recorded over TLS, and replayed to the byte. In the soak."""

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from authority import Authority
from clirun import Cli, maps
from noderuns import node
from origin import Call, Gate, Origin
from origin2 import Call as Call2
from origin2 import Origin2

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

pytestmark = pytest.mark.soak

SOURCE = Path(__file__).parent / "agents" / "node" / "packages"
SCRIPT = {
    "gap_ms": [1, 10],
    "reply": [
        {"when": {"user": "busy", "nth": 1}, "status": 429},
        {"when": {"user": "slow"}, "text": "slow {user}", "delay_ms": 150},
        {"when": {"user": "middle"}, "text": "middle {user}", "delay_ms": 60},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the lock file, installed; skips where npm is not there or can't get them."""
    node()
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    copy = tmp_path_factory.mktemp("packages") / "packages"
    shutil.copytree(SOURCE, copy)
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(["npm", "ci", *options], cwd=copy, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm could not install the packages: {done.stderr.strip()[-200:]}")
    return copy


@pytest.mark.parametrize("client", ["openai", "anthropic", "ai", "axios", "node-fetch", "undici", "undici-proxy"])
def test_a_client_asks_and_prints_the_same(client: str, folder: Path, cli: Cli, home: Path) -> None:
    argv = [node(), str(folder / "client.mjs"), client]
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=SCRIPT, tls=tls) as provider:
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert recorded.returncode == 0, recorded.stderr
    assert "taped 17 exchanges" in recorded.stderr and "tapeproxy: warning" not in recorded.stderr
    for _ in range(3):
        replayed = cli.run("replay", "t.tape.jsonl.gz", "--report", "r.json")
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
        assert json.loads((cli.cwd / "r.json").read_text())["drifts"] == []


def check(cli: Cli, said: str) -> None:
    """Replay three times: the same is asked and printed, by nothing that is not on the tape."""
    for _ in range(3):
        replayed = cli.run("replay", "t.tape.jsonl.gz", "--report", "r.json")
        assert (replayed.returncode, replayed.stdout) == (0, said), replayed.stderr
        assert "0 violations" in replayed.stderr and "unused" not in replayed.stderr
        assert json.loads((cli.cwd / "r.json").read_text())["drifts"] == []


def test_grpc_js_calls_and_hears_the_same(folder: Path, cli: Cli, authority: Authority) -> None:
    pytest.importorskip("grpc")
    from grpcservice import GrpcService

    with GrpcService(authority.issue("localhost")) as server:
        argv = [node(), str(folder / "grpc.mjs"), str(server.secure), str(server.plain), str(authority.cert)]
        trust = ["--upstream-ca", str(authority.cert)]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *trust, "--", *argv)
    assert recorded.returncode == 0, recorded.stderr
    assert "taped 42 exchanges" in recorded.stderr and "tapeproxy: warning" not in recorded.stderr
    check(cli, recorded.stdout)


@pytest.mark.parametrize("client", ["ws", "undici", "openai", "global"])
def test_a_client_of_websockets_says_and_hears_the_same(client: str, folder: Path, cli: Cli, home: Path) -> None:
    if client == "global" and _major() < 22:
        pytest.skip("Node 20 has no WebSocket of its own")
    argv = [node(), str(folder / "sockets.mjs"), client]
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"gap_ms": [1, 10]}, tls=tls) as provider:
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert recorded.returncode == 0, recorded.stderr
    assert "taped 3 exchanges" in recorded.stderr and "tapeproxy: warning" not in recorded.stderr
    assert '"type":"error"' not in recorded.stdout
    check(cli, recorded.stdout)


def _major() -> int:
    return int(subprocess.check_output([node(), "-p", "parseInt(process.versions.node)"], text=True))


DONE: defaultdict[str, Gate] = defaultdict(Gate)
LINES = [b'{"n": %d}\n' % number for number in range(4)]


async def serve(call: Call) -> None:
    """Lines, events, and answers that wait for another request."""
    name = call.request.target.partition("?")[0].strip("/")
    if name == "events":
        await call.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for number in range(3):
            await call.chunk(b"id: %d\ndata: event %d\n\n" % (number, number))
        await call.wait(Gate())  # until the client leaves
    if name.startswith("poll"):
        await call.wait(DONE[name.removeprefix("poll")])
    DONE[name.removeprefix("do")].open()
    await call.head("200 OK", "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
    for line in LINES:
        await call.chunk(line)
    await call.last_chunk()


async def serve2(call: Call2) -> None:
    name = call.path.partition("?")[0].strip("/")
    if name.startswith("poll"):
        await call.wait(DONE[name.removeprefix("poll")])
    DONE[name.removeprefix("do")].open()
    await call.head(200, ("content-type", "application/x-ndjson"))
    for number, line in enumerate(LINES):
        await call.data(line, end=number == len(LINES) - 1)


def test_what_ends_late_is_heard_the_same(folder: Path, cli: Cli, authority: Authority) -> None:
    DONE.clear()
    with Origin(serve) as origin, Origin2(serve2, authority.serving("127.0.0.1")) as second:
        argv = [node(), str(folder / "lines.mjs"), "http://lines.example.com", "https://second.example.com"]
        where = ["--map", f"lines.example.com={origin.url}", "--map", f"second.example.com={second.url}"]
        trust = ["--upstream-ca", str(authority.cert)]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *where, *trust, "--", *argv)
        assert second.calls, "undici speaks HTTP/2"
    assert recorded.returncode == 0, recorded.stderr
    assert "tapeproxy: warning" not in recorded.stderr, recorded.stderr
    check(cli, recorded.stdout)


def test_the_sdk_of_mcp_replays_on_stdio_with_the_server_gone(folder: Path, cli: Cli) -> None:
    server = cli.cwd / "weather.mjs"
    server.write_text(f"await import({json.dumps((folder / 'mcpserver.mjs').as_uri())});")
    wrapped = [sys.executable, "-m", "tapeproxy.cli.main", "mcp", "--", node(), str(server)]
    argv = [node(), str(folder / "mcp.mjs"), "stdio", *wrapped]
    recorded = cli.run("record", "-o", "t.tape.jsonl.gz", "--", *argv)
    assert recorded.returncode == 0, recorded.stderr
    assert "looking at Paris" in recorded.stdout and "out of order" in recorded.stdout
    server.unlink()
    check(cli, recorded.stdout)


def test_the_sdk_of_mcp_replays_on_http_with_the_server_gone(folder: Path, cli: Cli) -> None:
    argv = [node(), str(folder / "mcpserver.mjs"), "http"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        port = int(server.stdout.readline())
        agent = [node(), str(folder / "mcp.mjs"), "http", "http://mcp.example.com/mcp"]
        where = ["--map", f"mcp.example.com=http://127.0.0.1:{port}"]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *where, "--", *agent)
        server.stdin.close()
    assert recorded.returncode == 0, recorded.stderr
    assert "looking at Paris" in recorded.stdout and "out of order" in recorded.stdout
    check(cli, recorded.stdout)
