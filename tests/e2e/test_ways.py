"""The ways to the wire: as a proxy, by a port in front of a URL, and by that through the proxy. A tape knows none."""

import gzip
import socket
import sys
from pathlib import Path

import httpx
import pytest
from authority import Authority
from clirun import Cli
from corporate import corporate
from origin import Call, Origin
from wstalks import accepting, echo

from tapeproxy.proxy.tapefile import load

AGENT = """
import os, sys, urllib.request
for number, way in enumerate(sys.argv[1:]):
    base = os.environ.get("API_URL", "") if way != "proxy" else "https://api.example.com/v1"
    proxies = urllib.request.ProxyHandler({}) if way == "front" else urllib.request.ProxyHandler()
    with urllib.request.build_opener(proxies).open(f"{base}/start?n={number}", data=None) as answer:
        print(answer.status, answer.url.partition("/end")[2], answer.read().decode())
"""
WAYS = ["proxy", "front", "front-by-proxy"]


async def answer(call: Call) -> None:
    """Redirects absolutely, as a server does that knows its own name; says what it was asked."""
    name, target = call.request.header("host"), call.request.target
    if "/start" in target:
        await call.reply(b"", "302 Found", f"Location: https://{name}{target.replace('start', 'end')}")
    else:
        await call.reply(f"{name} {target}".encode())


def test_a_tape_of_each_way_replays_by_every_other(cli: Cli, authority: Authority) -> None:
    agent = [sys.executable, "-c", AGENT]
    front = ["--reverse", "API_URL=https://api.example.com/v1"]
    with Origin(answer, tls=authority.serving("127.0.0.1")) as origin:
        upstream = ["--map", f"api.example.com={origin.url}", "--upstream-ca", str(authority.cert)]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *upstream, *front, "--", *agent, *WAYS)
    said = "".join(f"200 ?n={n} api.example.com /v1/end?n={n}\n" for n in range(3))
    assert (recorded.returncode, recorded.stdout) == (0, said), recorded.stderr
    tape, _ = load(cli.cwd / "t.tape.jsonl.gz")
    asked = [f"https://api.example.com/v1/{what}?n={n}" for n in range(3) for what in ("start", "end")]
    assert [exchange.request.url.decode() for exchange in tape.exchanges] == asked
    assert {dict(exchange.request.headers)[b"Host"] for exchange in tape.exchanges} == {b"api.example.com"}
    assert [exchange.request.n for exchange in tape.exchanges] == [*range(6)], "each has its place in its lane"

    for turn in range(3):
        ways = [*WAYS[turn:], *WAYS[:turn]]
        replayed = cli.run("replay", "t.tape.jsonl.gz", "--", *agent, *ways)
        assert (replayed.returncode, replayed.stdout) == (0, said), replayed.stderr
        assert "6 of 6 exchanges served, 0 violations" in replayed.stderr
        assert "API_URL" not in replayed.stderr, "its port is another one, and no difference"

    # A fork opens the tape's ports, and asks what is behind them.
    with Origin(answer, tls=authority.serving("127.0.0.1")) as origin:
        upstream = ["--map", f"api.example.com={origin.url}", "--upstream-ca", str(authority.cert)]
        child = ["--at", "3", "-o", "c.tape.jsonl.gz", *upstream]
        forked = cli.run("fork", "t.tape.jsonl.gz", *child, "--", *agent, *WAYS)
        other = ["--dry-run", "--reverse", "API_URL=https://other.example.com/v1"]
        updated = cli.run("update", "t.tape.jsonl.gz", *other, "--", *agent, *WAYS)
    assert (forked.returncode, forked.stdout) == (0, said), forked.stderr
    assert "2 reused, 0 mutated, 4 live" in forked.stderr
    assert load(cli.cwd / "c.tape.jsonl.gz")[0].head.reverse == tape.head.reverse
    assert "GET https://other.example.com/v1/start?n=1" in updated.stderr


def test_what_is_not_on_the_tape_is_a_violation_by_a_front_too(cli: Cli, authority: Authority) -> None:
    one = "import os, urllib.request as u; print(u.urlopen(os.environ['API_URL'] + '/%s').read().decode())"
    with Origin(answer, tls=authority.serving("127.0.0.1")) as origin:
        upstream = ["--map", f"api.example.com={origin.url}", "--upstream-ca", str(authority.cert)]
        cli.run("record", "-o", "t.tape.jsonl.gz", *upstream, "--", sys.executable, "-c", "pass")
    front = ["--reverse", "API_URL=https://api.example.com"]
    replayed = cli.run("replay", "t.tape.jsonl.gz", *front, "--", sys.executable, "-c", one % "x")
    assert replayed.returncode == 3
    assert "GET https://api.example.com/x" in replayed.stderr


def test_a_started_proxy_has_fronts_until_it_is_stopped(cli: Cli, tmp_path: Path) -> None:
    with Origin(answer) as origin:
        process = cli.start("start", "-o", "t.tape.jsonl.gz", "--reverse", f"API_URL={origin.url}/v1")
        try:
            variables = cli.run("env", "--wait", "30")
            (line,) = [line for line in variables.stdout.splitlines() if line.startswith("export API_URL=")]
            url = line.partition("'")[2].partition("'")[0]
            assert httpx.get(f"{url}/end", trust_env=False).text == f"127.0.0.1:{origin.port} /v1/end"
            assert cli.run("stop").returncode == 0
        finally:
            process.terminate()
            said = process.communicate()[1]
    assert process.returncode == 0, said
    (exchange,) = load(tmp_path / "t.tape.jsonl.gz")[0].exchanges
    assert exchange.request.url.decode() == f"{origin.url}/v1/end"
    assert f"API_URL={url}" in said


PINNED = """
import ssl, sys, urllib.request
url, cafile = sys.argv[1:]
https = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cafile))
print(urllib.request.build_opener(https).open(url).read().decode())
"""


def test_a_host_that_passes_by_is_refused_in_a_replay_and_called_where_that_is_allowed(
    cli: Cli, authority: Authority
) -> None:
    with Origin(answer, tls=authority.serving("127.0.0.1")) as origin:
        place = f"127.0.0.1:{origin.port}"
        agent = [sys.executable, "-c", PINNED, f"{origin.url}/own", str(authority.cert)]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", "--no-tape", "127.0.0.1", "--", *agent)
        assert (recorded.returncode, recorded.stdout) == (0, f"{place} /own\n"), recorded.stderr
        assert "127.0.0.1 was called (once) and passed by untaped" in recorded.stderr
        assert load(cli.cwd / "t.tape.jsonl.gz")[0].exchanges == []

        refused = cli.run("replay", "t.tape.jsonl.gz")
        assert (refused.returncode, refused.stdout) == (3, "")
        assert f"--allow {place} has the agent call it" in refused.stderr
        assert len(origin.requests) == 1, "nobody was called"

        for words in (place, "127.0.0.1"):
            allowed = cli.run("replay", "t.tape.jsonl.gz", "--allow", words)
            assert (allowed.returncode, allowed.stdout) == (0, f"{place} /own\n"), allowed.stderr
        unknown = cli.run("replay", "t.tape.jsonl.gz", "--allow", "other.test")
        assert unknown.returncode == 2
        assert "names no port, and the tape has no note that other.test passed by" in unknown.stderr


PRIVATE = """
import ssl, sys, urllib.request
cafile, *urls = sys.argv[1:]
https = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cafile))
for url in urls:
    try:
        print(urllib.request.build_opener(https).open(url, data=b"a secret").read().decode())
    except OSError as error:
        print(str(error)[:200])
"""


def test_a_host_that_was_kept_off_a_tape_is_kept_off_its_forks_and_updates(cli: Cli, authority: Authority) -> None:
    """Its TLS stays closed, its requests are on no tape, and nobody is called unless that is said anew."""
    with (
        Origin(answer) as origin,
        Origin(answer) as clear,
        Origin(answer, tls=authority.serving("127.0.0.1")) as closed,
    ):
        kept_off = [word for one in (clear, closed) for word in ("--no-tape", f"127.0.0.1:{one.port}")]
        urls = [f"{one.url}/own" for one in (closed, clear, origin)]
        agent = ["--", sys.executable, "-c", PRIVATE, str(authority.cert), *urls]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *kept_off, *agent)
        assert recorded.returncode == 0, recorded.stderr
        called = [one.connections for one in (clear, closed)]
        for number, command in enumerate((["fork", "--at", "1"], ["update", "--dry-run"])):
            child = ["-o", f"c{number}.tape.jsonl.gz"] if command[0] == "fork" else []
            done = cli.run(command[0], "t.tape.jsonl.gz", *command[1:], *child)
            assert done.returncode == 3, done.stderr
            assert [line.count("Tape Violation") for line in done.stdout.splitlines()] == [1, 1, 0]
            for one in (clear, closed):
                assert f"--no-tape 127.0.0.1:{one.port} has the agent call it" in done.stderr
        assert [one.connections for one in (clear, closed)] == called

        forked = cli.run("fork", "t.tape.jsonl.gz", "--at", "1", "-o", "d.tape.jsonl.gz", *kept_off)
        assert (forked.returncode, forked.stdout) == (0, recorded.stdout), forked.stderr
        assert "127.0.0.1 was called (2 times) and passed by untaped" in forked.stderr
        updated = cli.run("update", "t.tape.jsonl.gz", "--dry-run", *kept_off)
        assert updated.returncode == 3, "what is offline calls nobody"
        assert [one.connections for one in (clear, closed)] == [count + 1 for count in called]
    for name in ("c0", "d"):
        tape = load(cli.cwd / f"{name}.tape.jsonl.gz")[0]
        assert [one.request.url.decode() for one in tape.exchanges] == urls[2:]
        assert list(tape.head.no_tape) == kept_off[1::2]
        again = cli.run("replay", f"{name}.tape.jsonl.gz")
        assert again.returncode == 3
        assert f"--allow 127.0.0.1:{closed.port} has the agent call it" in again.stderr


def test_a_host_that_passes_by_does_so_by_a_front_too(cli: Cli) -> None:
    one = "import os, urllib.request as u; print(u.urlopen(os.environ['API_URL'] + '/x').read().decode())"
    with Origin(answer) as origin:
        options = ["--reverse", f"API_URL={origin.url}", "--no-tape", f"LOCALHOST:{origin.port}"]
        options += ["--no-tape", f"127.0.0.1:{origin.port}"]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *options, "--", sys.executable, "-c", one)
        assert (recorded.returncode, recorded.stdout) == (0, f"127.0.0.1:{origin.port} /x\n"), recorded.stderr
        assert load(cli.cwd / "t.tape.jsonl.gz")[0].exchanges == []
        refused = cli.run("replay", "t.tape.jsonl.gz")
        assert len(origin.requests) == 1, "nobody was called"
    assert refused.returncode == 3
    assert f"--allow 127.0.0.1:{origin.port} has the agent call it" in refused.stderr


def test_an_upstream_proxy_that_is_not_there_is_told_of_before_the_agent_runs_and_when_it_has_failed(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    asks = (
        "import sys, urllib.request as u; print('begun', file=sys.stderr)\ntry: u.urlopen('https://api.example.com')\n"
    )
    agent = ["--", sys.executable, "-c", asks + "except OSError: pass"]
    done = cli.run(
        "record", "-q", "-o", "t.tape.jsonl.gz", "--upstream-proxy", f"http://u:hunter2@127.0.0.1:{port}", *agent
    )
    first, begun, last = done.stderr.splitlines()
    assert first.startswith(
        f"tapeproxy: warning: the upstream proxy 127.0.0.1:{port} cannot be reached: connection refused"
    )
    assert begun == "begun"
    assert last.startswith("tapeproxy: warning: 1 failed: api.example.com: ")
    assert "(see --upstream-proxy)" in last
    done = cli.run("record", "-o", "u.tape.jsonl.gz", "--upstream-proxy", "proxy", *agent)
    assert (done.returncode, "begun" in done.stderr) == (2, False)
    assert "the upstream proxy's URL has neither a scheme nor a port" in done.stderr


def test_the_password_of_an_upstream_proxy_is_nowhere(cli: Cli, authority: Authority) -> None:
    with (
        Origin(answer, tls=authority.serving("api.example.com")) as origin,
        corporate(origin.port) as proxy,
    ):
        url = proxy.url.replace("pa:ss", "hunter2-and-more")
        agent = [
            sys.executable,
            "-c",
            "import urllib.request as u; print(u.urlopen('https://api.example.com/x').status)",
        ]
        options = ["--upstream-proxy", url, "--upstream-ca", str(authority.cert)]
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *options, "--", *agent)
        forked = cli.run("fork", "t.tape.jsonl.gz", "--at", "1", "-o", "c.tape.jsonl.gz", *options)
    for done in (recorded, forked):
        assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
    assert len(proxy.heads) == 2
    for head in proxy.heads:
        assert "Proxy-Authorization: Basic dXNAZXI6aHVudGVyMi1hbmQtbW9yZQ==" in head
    tapes = [gzip.decompress((cli.cwd / f"{name}.tape.jsonl.gz").read_bytes()).decode() for name in "tc"]
    text = "".join((*tapes, recorded.stdout, recorded.stderr, forked.stderr))
    assert "hunter2" not in text
    assert "aHVudGVyMi" not in text
    assert "proxy-authorization" not in text.lower()


SPEAKER = """
import os, queue, sys, grpc
from websockets.sync.client import connect
way = sys.argv[1]
at = (lambda name, url: os.environ[name] if way == "front" else url)
with connect(at("WS_URL", "http://ws.example.com").replace("http", "ws") + "/chat?x=1") as session:
    for word in ("one", "two"):
        session.send(word)
        print(session.recv(), session.recv())
with grpc.insecure_channel(at("GRPC_URL", "http://grpc.example.com:80").partition("//")[2]) as channel:
    print(channel.unary_unary("/test.Service/Unary")(b"hello", metadata=(("mark", "m"),), timeout=20))
    says = queue.Queue()
    says.put(b"message 1")
    chat = channel.stream_stream("/test.Service/Chat")(iter(says.get, None), timeout=20)
    for number, reply in enumerate(chat):
        print(reply)
        says.put((b"message 2", None)[number])
    print(chat.code(), chat.trailing_metadata())
"""


def test_websockets_and_grpc_come_by_a_front_as_by_the_proxy(cli: Cli, authority: Authority) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed")
    from grpcservice import GrpcService

    agent = [sys.executable, "-c", SPEAKER]
    fronts = ["--reverse", "WS_URL=http://ws.example.com", "--reverse", "GRPC_URL=http://grpc.example.com"]
    with Origin(accepting(echo)) as origin, GrpcService(authority.issue("localhost")) as service:
        maps = ["--map", f"ws.example.com={origin.url}", "--map", f"grpc.example.com=http://127.0.0.1:{service.plain}"]
        heard = [cli.run("record", "-o", f"{way}.gz", *maps, *fronts, "--", *agent, way) for way in ("front", "proxy")]
    assert [done.returncode for done in heard] == [0, 0], heard[0].stderr + heard[1].stderr
    assert heard[0].stdout == heard[1].stdout
    assert heard[0].stdout.splitlines()[:3] == ["one eno", "two owt", "b're:hello'"]
    for tape in ("front", "proxy"):
        asked = [
            (one.request.url, one.request.http, one.request.n) for one in load(cli.cwd / f"{tape}.gz")[0].exchanges
        ]
        assert asked == [
            (b"http://ws.example.com/chat?x=1", "HTTP/1.1", 0),
            (b"http://grpc.example.com/test.Service/Unary", "HTTP/2", 1),
            (b"http://grpc.example.com/test.Service/Chat", "HTTP/2", 2),
        ]
        for way in ("front", "proxy"):
            done = cli.run("replay", "--require-all", f"{tape}.gz", *fronts, "--", *agent, way)
            assert (done.returncode, done.stdout) == (0, heard[0].stdout), done.stderr
