"""HTTP/2 from end to end: real clients hear the same from both wires, and a fork asks the world nothing."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from authority import Authority
from bothwires import HOST, URL, BothWires
from clirun import Cli
from origin2 import Call, Origin2
from recording import Recording
from wireclients import PATIENCE, Reply, Sent, Way, with_curl

from tapeproxy.proxy.tapefile import load


def with_httpx2(way: Way, sent: Sent) -> Reply:
    with httpx.Client(http2=True, proxy=way.proxy, verify=way.trust(), trust_env=False, timeout=PATIENCE) as client:
        reply = client.request(sent.method, sent.url, content=sent.body, headers=sent.headers)
    assert reply.http_version == "HTTP/2"
    return Reply(reply.status_code, tuple((n.decode(), v.decode()) for n, v in reply.headers.raw), reply.content)


CLIENTS = {"httpx": with_httpx2, "curl": with_curl}
LINES = [b'{"n": %d}\n' % number for number in range(5)]


async def answer(call: Call) -> None:
    body = await call.body()
    match call.path:
        case "/json":
            await call.head(200, ("content-type", "application/json"), ("x-double", "1"), ("x-double", "2"))
            await call.data(b'{"got": ' + body + b"}", end=True)
        case "/length":
            await call.head(200, ("content-length", "5"))
            await call.data(b"hello", end=True)
        case "/ndjson":
            await call.head(200, ("content-type", "application/x-ndjson"))
            for line in LINES:
                await call.data(line)
            await call.trailers(("x-lines", "5"))
        case "/nothing":
            await call.head(204, end=True)
        case "/head":
            await call.head(200, ("content-length", "1234"), end=True)
        case "/missing":
            await call.head(404)
            await call.data(b"no", end=True)
        case "/large":
            await call.head(200)
            for number in range(30):
                await call.data(bytes([number]) * 100_000, end=number == 29)
        case "/upload":
            await call.head(200)
            await call.data(str(len(body)).encode(), end=True)
        case _:
            raise AssertionError(call.path)


SENT = {
    "json": Sent("POST", f"{URL}/json", b'{"a": 1}', (("content-type", "application/json"),)),
    "a length": Sent("GET", f"{URL}/length"),
    "lines of JSON": Sent("GET", f"{URL}/ndjson"),
    "no content": Sent("GET", f"{URL}/nothing"),
    "a head": Sent("HEAD", f"{URL}/head"),
    "an error": Sent("GET", f"{URL}/missing"),
    "a large answer": Sent("GET", f"{URL}/large"),
    "a large upload": Sent("POST", f"{URL}/upload", b"x" * 3_000_000, (("content-type", "text/plain"),)),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_hears_the_same_from_both_wires(wires: BothWires, authority: Authority, client: str) -> None:
    def play(way: Way) -> dict[str, Reply]:
        return {name: CLIENTS[client](way, sent) for name, sent in SENT.items()}

    with Origin2(answer, authority.serving("127.0.0.1")) as origin:
        heard = wires.record_at(origin, play)
    assert heard["lines of JSON"].body == b"".join(LINES)
    assert heard["a large upload"].body == b"3000000"
    assert heard["json"].all("x-double") == ["1", "2"]
    assert len(heard["a large answer"].body) == 3_000_000
    assert {one.request.http for one in wires.tape.exchanges} == {"HTTP/2"}
    assert wires.replay(play) == heard
    assert wires.replay(play, speed=1.0) == heard


AGENT = """
import asyncio, os, sys, httpx
async def main():
    async with httpx.AsyncClient(http2=True, timeout=20) as client:
        same = (client.post(sys.argv[1] + "/upload", content=b"same") for _ in range(4))
        own = (client.post(sys.argv[1] + "/json", content=b"%d" % n) for n in range(4))
        for reply in await asyncio.gather(*same, *own):
            print(reply.http_version, reply.status_code, reply.text)
asyncio.run(main())
"""


class Run(NamedTuple):
    cli: Cli
    heard: str
    trust: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, home: Path, authority: Authority) -> Run:
    """A tape of an agent whose tasks share a connection; its server is gone."""
    cli = Cli(tmp_path_factory.mktemp("http2"), home)
    (cli.cwd / "agent.py").write_text(AGENT)
    with Origin2(answer, authority.serving("127.0.0.1")) as origin:
        trust = ("--upstream-ca", str(authority.cert))
        argv = ("--map", f"{HOST}={origin.url}", *trust, "--", sys.executable, "agent.py", URL)
        done = cli.run("record", "-o", "t.tape.jsonl.gz", *argv)
    assert done.returncode == 0, done.stderr
    return Run(cli, done.stdout, str(authority.cert))


def test_tasks_on_one_connection_keep_their_lanes(run: Run) -> None:
    tape, _ = load(run.cli.cwd / "t.tape.jsonl.gz")
    assert {one.request.alpn for one in tape.exchanges} == {"h2"}
    assert len({one.request.lane for one in tape.exchanges}) == 8
    assert not any(name == b"x-tapeproxy-lane" for one in tape.exchanges for name, _ in one.request.headers)
    done = run.cli.run("replay", "t.tape.jsonl.gz")
    assert (done.returncode, done.stdout) == (0, run.heard), done.stderr
    assert "8 of 8 exchanges served, 0 violations" in done.stderr


def test_a_fork_serves_http2_from_the_tape_and_asks_nobody(run: Run) -> None:
    done = run.cli.run("fork", "t.tape.jsonl.gz", "--at", "8", "--status", "503", "-o", "child.tape.jsonl.gz")
    assert done.returncode == 0, done.stderr
    assert "7 reused, 1 mutated, 0 live" in done.stderr
    assert done.stdout.count("HTTP/2 200") == 7 and done.stdout.count("HTTP/2 503") == 1


def test_the_recorder_adds_nothing_to_what_the_server_hears(tmp_path: Path, authority: Authority) -> None:
    seen: list[tuple[tuple[str, str], ...]] = []

    async def look(call: Call) -> None:
        seen.append((*call.headers, (":authority", call.authority)))
        await call.head(200, end=True)

    def ask(make: Callable[[], httpx.Client], url: str) -> None:
        with make() as client:
            client.get(url, headers={"x-a": "1"})

    with Origin2(look, authority.serving("127.0.0.1")) as origin:
        ask(lambda: httpx.Client(http2=True, verify=authority.trusting(), trust_env=False), origin.url)
        with Recording(tmp_path, authority, upstream_ca=authority.cert) as recording:
            ask(lambda: recording.client(http2=True), origin.url)
    assert seen[0] == seen[1]
