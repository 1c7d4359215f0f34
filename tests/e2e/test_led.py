"""`record --local`: what takes no notice of a proxy is led to the wire all the same, and replays by every other way."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from authority import Authority
from clirun import Cli
from origin import PATIENCE, Call, Origin
from traps import CALLS, linux

from tapeproxy.proxy.tapefile import load

pytestmark = linux

HOST = "api.example.com"
PLAIN = """
import sys, urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for url in sys.argv[1:]:
    print(direct.open(url).read().decode())
"""
BY_PROXY = PLAIN.replace("{}", "")
SOCKETS = """
import socket, ssl, sys
with socket.create_connection((sys.argv[1], 443)) as plain:
    with ssl.create_default_context().wrap_socket(plain, server_hostname=sys.argv[1]) as sock:
        head = f"GET {sys.argv[2]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\nConnection: close\\r\\n\\r\\n"
        sock.sendall(head.encode())
        print(b"".join(iter(lambda: sock.recv(999), b"")).partition(b"\\r\\n\\r\\n")[2].decode())
"""
NODE = """
require('https').get(process.argv[2], { agent: new (require('https').Agent)() }, (answer) => {
  answer.on('data', (data) => process.stdout.write(`${data}\\n`));
});
"""


async def answer(call: Call) -> None:
    name, target = call.request.header("host"), call.request.target
    await call.reply(f"{name} {target}".encode())


def clients(folder: Path) -> Iterator[tuple[list[str], str]]:
    """Command lines that ask the server for a path without a proxy, and the path."""
    yield [sys.executable, "-c", PLAIN, f"https://{HOST}/shim", f"http://{HOST}/clear"], "/shim"
    yield [sys.executable, "-I", "-c", SOCKETS, HOST, "/isolated"], "/isolated"
    if curl := shutil.which("curl"):
        yield [curl, "--noproxy", "*", "-sS", "-w", "\n", f"https://{HOST}/curl"], "/curl"
    if node := shutil.which("node"):
        (folder / "agent.cjs").write_text(NODE)
        yield [node, str(folder / "agent.cjs"), f"https://{HOST}/node"], "/node"


def led(recorded: "subprocess.CompletedProcess[str]") -> "subprocess.CompletedProcess[str]":
    """A recording that worked; skips where this machine has no namespaces, or no nf_tables."""
    for lacking in ("--local needs a network namespace", "--local needs a kernel"):
        if lacking in recorded.stderr:
            pytest.skip(recorded.stderr.strip())
    assert recorded.returncode == 0, recorded.stderr
    return recorded


def test_clients_that_know_no_proxy_are_taped_and_replayed(cli: Cli, authority: Authority, tmp_path: Path) -> None:
    asked = [*clients(tmp_path)]
    agent = tmp_path / "agent.py"
    agent.write_text(
        f"import subprocess\nfor words in {[words for words, _ in asked]!r}:\n    subprocess.run(words, check=True)\n"
    )
    with Origin(answer, tls=authority.serving("127.0.0.1")) as secure, Origin(answer) as clear:
        upstream = ["--map", f"{HOST}:443={secure.url}", "--map", f"{HOST}:80={clear.url}"]
        options = ["--local", "--upstream-ca", str(authority.cert), *upstream]
        recorded = led(cli.run("record", "-o", "t.tape.jsonl.gz", *options, "--", sys.executable, str(agent)))
    said = "".join(f"{HOST} {path}\n" + f"{HOST} /clear\n" * (path == "/shim") for _, path in asked)
    assert recorded.stdout == said
    assert "did not come through the proxy" not in recorded.stderr
    tape, _ = load(cli.cwd / "t.tape.jsonl.gz")
    urls = [exchange.request.url.decode() for exchange in tape.exchanges]
    assert urls == [f"https://{HOST}/shim", f"http://{HOST}/clear", *(f"https://{HOST}{path}" for _, path in asked[1:])]
    assert [exchange.request.lane is not None for exchange in tape.exchanges[:2]] == [True, True]

    # One of them is a Python without the shim, and that is a drift.
    again = cli.run("replay", "t.tape.jsonl.gz", "--on-drift", "report")
    assert (again.returncode, again.stdout) == (0, said), again.stderr
    assert f"{len(urls)} of {len(urls)} exchanges served, 0 violations" in again.stderr


def test_a_tape_of_this_way_replays_by_the_proxy_and_back(cli: Cli, authority: Authority) -> None:
    direct, proxied = [[sys.executable, "-c", code, f"https://{HOST}/x"] for code in (PLAIN, BY_PROXY)]
    with Origin(answer, tls=authority.serving("127.0.0.1")) as origin:
        upstream = ["--map", f"{HOST}={origin.url}", "--upstream-ca", str(authority.cert)]
        led(cli.run("record", "-o", "led.tape.jsonl.gz", "--local", *upstream, "--", *direct))
        assert cli.run("record", "-o", "proxied.tape.jsonl.gz", *upstream, "--", *proxied).returncode == 0
    for tape, agent in (("led", proxied), ("led", direct), ("proxied", proxied)):
        replayed = cli.run("replay", f"{tape}.tape.jsonl.gz", "--", *agent)
        assert (replayed.returncode, replayed.stdout) == (0, f"{HOST} /x\n"), replayed.stderr
    missed = cli.run("replay", "led.tape.jsonl.gz", "--", *direct[:-1], "https://other.example.com/y")
    assert missed.returncode == 3
    assert "GET https://other.example.com/y" in missed.stderr
    refused = cli.run("replay", "led.tape.jsonl.gz", "--guard", "audit", "--", *direct)
    assert refused.returncode == 3
    assert "recorded with --local, whose replay needs a network namespace" in refused.stderr


INSIDE = """
import http.server, sys, threading
class Own(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"own")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Own)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.argv.append(f"http://127.0.0.1:{server.server_port}/")
"""


def test_servers_on_the_loopback_outside_are_taped_and_those_of_the_run_are_its_own(cli: Cli) -> None:
    (cli.cwd / "agent.py").write_text(INSIDE + PLAIN)
    agent = [sys.executable, "agent.py"]
    with Origin(answer) as origin:
        words = [*agent, f"{origin.url}/outside"]
        recorded = led(cli.run("record", "-o", "t.tape.jsonl.gz", "--local", "--", *words))
    assert recorded.stdout == f"127.0.0.1:{origin.port} /outside\nown\n"
    (exchange,) = load(cli.cwd / "t.tape.jsonl.gz")[0].exchanges
    assert exchange.request.url.decode() == f"{origin.url}/outside"
    again = cli.run("replay", "t.tape.jsonl.gz")
    assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr


LOOK_UP = """
import socket
try:
    print(socket.getaddrinfo("nobody.invalid", 443))
except socket.gaierror as error:
    print(error.errno)
"""


def test_a_name_that_there_is_not_is_none_in_a_replay_either(cli: Cli) -> None:
    agent = [sys.executable, "-c", LOOK_UP]
    recorded = led(cli.run("record", "-o", "t.tape.jsonl.gz", "--local", "--", *agent))
    if recorded.stdout != f"{socket.EAI_NONAME}\n":
        pytest.skip("nobody can be asked for names here")
    assert "no-name" in [note.what for note in load(cli.cwd / "t.tape.jsonl.gz")[0].notes]
    again = cli.run("replay", "t.tape.jsonl.gz")
    assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr


TALK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
    sock.sendall(b"ping\\n")
    print(sock.recv(99))
"""


@contextmanager
def echo() -> Iterator[int]:
    """A server that is not HTTP: it says what it was told."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.sendall(client.recv(99))

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(PATIENCE)


def test_what_is_not_http_passes_untaped_and_is_refused_in_a_replay(cli: Cli) -> None:
    with echo() as port:
        agent = [sys.executable, "-I", "-c", TALK, str(port)]
        recorded = led(cli.run("record", "-o", "t.tape.jsonl.gz", "--local", "--", *agent))
    assert recorded.stdout == "b'ping\\n'\n"
    assert "was not HTTP and passed through untaped" in recorded.stderr
    again = cli.run("replay", "t.tape.jsonl.gz", "--on-drift", "report")
    assert again.returncode == 3, again.stderr
    assert "ping" not in again.stdout


def test_a_recorder_that_is_killed_leaves_no_twin_outside(cli: Cli) -> None:
    mine, its = os.pipe()
    agent = [sys.executable, "-c", "print('up', flush=True); input()"]
    recorder = cli.start(
        "record", "-o", "t.tape.jsonl.gz", "--local", "--", *agent, pass_fds=(its,), stdin=subprocess.PIPE
    )
    os.close(its)
    assert recorder.stdout is not None
    if recorder.stdout.readline() != "up\n":
        pytest.skip(recorder.communicate(timeout=PATIENCE)[1])
    recorder.kill()
    recorder.wait(PATIENCE)
    assert recorder.stdin is not None
    recorder.stdin.close()  # the agent lives on until then
    with os.fdopen(mine, "rb") as pipe:
        assert pipe.read() == b"", "closed once nobody holds its other end: neither recorder nor twin"
    for stream in (recorder.stdout, recorder.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.skipif(not hasattr(os, "uname") or os.uname().machine not in CALLS, reason="no call numbers")
def test_where_there_is_no_namespace_it_says_so_and_what_to_do(cli: Cli) -> None:
    code = "import traps; traps.deny({'unshare': 1}); from tapeproxy.cli.main import main; main()"
    argv = [sys.executable, "-c", code, "record", "-o", "t.tape.jsonl.gz", "--local", "--", "true"]
    environment = cli.environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(argv, cwd=cli.cwd, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "--local needs a network namespace: operation not permitted" in done.stderr
    assert "--reverse" in done.stderr
    assert not (cli.cwd / "t.tape.jsonl.gz").exists()
