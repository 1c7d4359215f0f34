"""A Node agent on Node's own clients: recorded over TLS, and replayed to the byte, times and ids and all."""

import json
import socket
from collections import defaultdict
from pathlib import Path

import pytest
from authority import Authority
from clirun import Cli, maps
from noderuns import node
from origin import Gate
from origin2 import Call, Origin2

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

AGENTS = Path(__file__).parent / "agents" / "node"
SCRIPT = {
    "gap_ms": [1, 5],
    "reply": [
        {"when": {"user": "busy", "nth": 1}, "status": 429},
        {"when": {"user": "slow"}, "text": "slow {user}", "delay_ms": 120},
        {"when": {"user": "middle"}, "text": "middle {user}", "delay_ms": 50},
    ],
}


def test_an_agent_on_node_s_own_clients_asks_and_prints_the_same(cli: Cli, home: Path) -> None:
    argv = [node(), str(AGENTS / "builtins.mjs")]
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=SCRIPT, tls=tls) as provider:
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
        assert all("x-tapeproxy-lane" not in request.headers for request in provider.requests)
    assert recorded.returncode == 0, recorded.stderr
    assert "tapeproxy: warning" not in recorded.stderr, recorded.stderr

    replayed = cli.run("replay", "t.tape.jsonl.gz", "--report", "r.json")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert json.loads((cli.cwd / "r.json").read_text())["drifts"] == []
    tape, _ = load(cli.cwd / "t.tape.jsonl.gz")
    lanes = [exchange.request.lane for exchange in tape.exchanges]
    assert len(tape.exchanges) == 20 and None not in lanes
    kinds = {lane.rpartition("/js")[0].rpartition("/")[2] for lane in lanes if lane}
    assert kinds == {"m", "p0", "p1", "t0"}


async def answer_out_of_order(call: Call) -> None:
    """/late is answered when /soon has been."""
    soon = SOON[call.authority]
    if call.path == "/late":
        await call.wait(soon)
    body = await call.body()
    await call.head(200, ("content-type", "text/plain"))
    await call.data(b"%s: %d" % (call.path.encode(), len(body)))
    await call.trailers(("x-after", dict(call.headers)["x-values"]))
    if call.path == "/soon":
        soon.open()


SOON: defaultdict[str, Gate] = defaultdict(Gate)
"""By authority."""


def test_sessions_of_http2_ask_and_print_the_same(cli: Cli, authority: Authority) -> None:
    """One session has many requests at once, and their answers come as they please."""
    with (
        Origin2(answer_out_of_order, authority.serving("127.0.0.1")) as secure,
        Origin2(answer_out_of_order) as plain,
    ):
        argv = [node(), str(AGENTS / "sessions.mjs"), secure.url, plain.url]
        trust = ["--upstream-ca", str(authority.cert)]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *trust, "--", *argv)
        sent = [name for call in (*secure.calls, *plain.calls) for name, _ in call.headers]
    assert recorded.returncode == 0, recorded.stderr
    assert "tapeproxy: warning" not in recorded.stderr, recorded.stderr
    assert "x-tapeproxy-lane" not in [*sent, *recorded.stdout.split()]
    tape, _ = load(cli.cwd / "t.tape.jsonl.gz")
    assert {(one.request.http, one.request.alpn) for one in tape.exchanges} == {("HTTP/2", "h2"), ("HTTP/2", None)}
    assert len(tape.exchanges) == 18 and all(one.request.lane for one in tape.exchanges)
    for _ in range(3):
        replayed = cli.run("replay", "t.tape.jsonl.gz", "--report", "r.json")
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
        report = json.loads((cli.cwd / "r.json").read_text())
        assert report["drifts"] == []


def test_what_comes_by_a_port_in_front_of_a_url_has_its_lane(cli: Cli, provider: FakeProvider) -> None:
    agent = """
    const values = () => `${Date.now()} ${Math.random()}`;
    const ask = async (n) => {
      const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: `${n} ${values()}` }] });
      const answer = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
        method: 'POST', body, headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
      });
      return [await answer.json(), values()];
    };
    Promise.all([ask(1), ask(2), ask(3)]).then((all) => console.log(JSON.stringify(all)));
    """
    front = ["--reverse", "OPENAI_BASE_URL=https://api.openai.com/v1", *maps(provider.url)]
    recorded = cli.run("record", "-o", "t.jsonl.gz", *front, "--", node(), "-e", agent, keys=True)
    assert recorded.returncode == 0, recorded.stderr
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    places = [(exchange.request.lane, exchange.request.n) for exchange in tape.exchanges]
    assert sorted(places) == [("m/js", 0), ("m/js", 1), ("m/js", 2)]
    provider.stop()
    replayed = cli.run("replay", "t.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert "0 violations" in replayed.stderr


def test_a_program_without_the_shim_is_told_of(cli: Cli, provider: FakeProvider) -> None:
    """It empties its child's environment by way of a shell, and the child finds the proxy by itself."""
    ask = (
        "require('http').get({host: '127.0.0.1', port: process.argv[1], path: 'http://search.example.com/search?q=a'})"
    )
    command = f'env -i PATH="$PATH" {node()} -e "{ask}" "${{HTTP_PROXY##*:}}"'
    recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", "sh", "-c", command)
    assert recorded.returncode == 0, recorded.stderr
    assert "a Node ran without the shim, so its clock and its random numbers are its own" in recorded.stderr


@pytest.mark.parametrize("shim", [True, False])
def test_a_connection_past_the_proxy_is_noticed_and_refused_in_a_replay(shim: bool, cli: Cli) -> None:
    code = "require('net').connect(9, '192.0.2.1').on('error', (e) => console.log(e.code)).setTimeout(99, process.exit)"
    option = [] if shim else ["--no-shim"]
    recorded = cli.run("record", *option, "-o", "t.jsonl.gz", "--", node(), "-e", code)
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    bypasses = [(note.what, note.data["address"]) for note in tape.notes if note.what == "bypass"]
    assert bypasses == ([("bypass", "192.0.2.1:9")] if shim else []), recorded.stderr
    replayed = cli.run("replay", "t.jsonl.gz", "--guard", "audit", "--", node(), "-e", code) if shim else None
    if replayed is not None:
        assert (replayed.returncode, replayed.stdout) == (3, "ECONNREFUSED\n"), replayed.stderr
        assert "the agent tried to reach 192.0.2.1:9 past the proxy, and was refused" in replayed.stderr


@pytest.mark.parametrize("guard", ["namespace", "landlock"])
def test_a_server_of_others_on_loopback_is_past_the_tape(guard: str, cli: Cli) -> None:
    """The kernel keeps a replay from it; that is told, and not only refused."""
    code = "require('net').connect(+process.argv[1], '127.0.0.1').on('error', () => {}).on('connect', process.exit)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        recorded = cli.run("record", "-o", "t.jsonl.gz", "--", node(), "-e", code, str(port))
        assert recorded.returncode == 0, recorded.stderr
        replayed = cli.run("replay", "t.jsonl.gz", "--guard", guard)
        if replayed.returncode == 2:
            pytest.skip(f"no {guard} here")
        server.settimeout(5)
        server.accept()[0].close()  # the recording's; a second one would be the replay's
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert replayed.returncode == 3, replayed.stderr
    assert f"the agent tried to reach 127.0.0.1:{port} past the proxy, and was refused" in replayed.stderr


def test_a_server_of_the_run_is_no_violation(cli: Cli) -> None:
    code = """
    const net = require('net');
    const server = net.createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1', () => {
      const client = net.connect(server.address().port, '127.0.0.1', () => {});
      client.on('data', (data) => console.log(String(data))).on('close', () => server.close());
    });
    """
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--", node(), "-e", code)
    replayed = cli.run("replay", "t.jsonl.gz")
    assert (recorded.stdout, replayed.returncode, replayed.stdout) == ("hello\n", 0, "hello\n"), replayed.stderr


@pytest.mark.soak
def test_a_fork_keeps_the_past_asks_the_future_anew_and_replays(cli: Cli, provider: FakeProvider) -> None:
    argv = ["--", node(), str(AGENTS / "inturn.mjs")]
    recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), *argv, keys=True)
    asked = len(provider.requests)
    again = cli.run("verify", "t.jsonl.gz", "--times", "3", *argv)
    assert (again.returncode, "identical replays: 3/3" in again.stdout) == (0, True), again.stderr

    edit = ["--at", "2", "--set", "$.choices[0].message.content=CHANGED"]
    forked = cli.run("fork", "t.jsonl.gz", "-o", "c.jsonl.gz", *edit, *maps(provider.url), *argv, keys=True)
    assert "1 reused, 1 mutated, 1 live" in forked.stderr
    assert len(provider.requests) == asked + 1
    first, _, third = recorded.stdout.split(" \n ")
    assert forked.stdout.startswith(f"{first} \n CHANGED \n ") and third not in forked.stdout
    child = cli.run("replay", "c.jsonl.gz", *argv)
    assert (child.returncode, child.stdout) == (0, forked.stdout), child.stderr


@pytest.mark.soak
def test_every_source_of_time_and_chance_is_the_same_in_twenty_replays(cli: Cli, provider: FakeProvider) -> None:
    argv = [node(), str(AGENTS / "sources.mjs")]
    recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    provider.stop()
    assert recorded.returncode == 0, recorded.stderr
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    within = {part for one in tape.exchanges for part in str(one.request.lane).split("/") if part[0] in "pt"}
    assert within == {"p0", "p1", "p2", "p3", "t0", "t1"}, "each process and thread is one of its own"
    for _ in range(20):
        replayed = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
        assert json.loads((cli.cwd / "r.json").read_text())["drifts"] == []
