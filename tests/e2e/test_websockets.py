"""WebSockets of real clients: recorded over real TLS, replayed with the server gone, and told where they differ."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import wstalks
from clirun import Cli
from origin import Call, Origin

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.messages import read_frames

AGENTS = Path(__file__).parent / "agents"
AGENT = [sys.executable, str(AGENTS / "with_sockets.py")]
TAPE = "t.tape.jsonl.gz"


@dataclass
class Recorded:
    """A recording of the agent above, and what it printed."""

    cli: Cli
    said: str


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[Recorded]:
    cli = Cli(tmp_path_factory.mktemp("sockets"), home)
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with Origin(wstalks.accepting(wstalks.echo, "chat"), tls=tls) as origin:
        where = ["--map", f"echo.example.com=https://127.0.0.1:{origin.port}"]
        done = cli.run("record", "-o", TAPE, *where, "--", *AGENT)
    assert done.returncode == 0, done.stderr
    yield Recorded(cli, done.stdout)


def test_29_every_client_of_an_echo_hears_the_same_again(recorded: Recorded) -> None:
    replayed = recorded.cli.run("replay", "--require-all", TAPE)
    assert (replayed.returncode, replayed.stdout) == (0, recorded.said), replayed.stderr
    tape, ending = load(recorded.cli.cwd / TAPE)
    assert ending.sealed
    assert [one.request.url.rpartition(b"/")[2] for one in tape.exchanges] == [
        *(b"threaded", b"plain", b"loop", b"loop", b"aiohttp")
    ]
    # Each names its lane, also those that open their sockets themselves.
    assert [one.request.lane for one in tape.exchanges] == ["m", "m", "m/a0/a0", "m/a0/a1", "m/a0"]
    assert not any(b"tapeproxy" in name.lower() for one in tape.exchanges for name, _ in one.request.headers)
    assert all(one.end is not None and one.end.how == "complete" for one in tape.exchanges)
    assert tape.seal is not None and tape.seal.messages


def test_a_changed_message_is_explained(recorded: Recorded) -> None:
    report = recorded.cli.cwd / "report.json"
    done = recorded.cli.run("replay", "--report", str(report), TAPE, "--", *AGENT, "other")
    assert done.returncode == 3
    assert "message 1 of the client on the WebSocket of exchange 5 is not the one on the tape" in done.stderr
    (violation,) = json.loads(report.read_text())["violations"]
    assert violation["kind"] == "websocket"
    (difference,) = violation["differences"]
    assert (difference["where"], difference["taped"], difference["asked"]) == ("body $.word", "last", "other")


def test_a_client_that_says_less_is_told(recorded: Recorded) -> None:
    program = "from websockets.sync.client import connect\nconnect('wss://echo.example.com/threaded').close()"
    argv = ["--", sys.executable, "-c", program]
    done = recorded.cli.run("replay", TAPE, *argv)
    assert done.returncode == 0, done.stderr
    assert "note: the WebSocket of exchange 1: the client sent 0 of 3 messages" in done.stderr
    done = recorded.cli.run("replay", "--require-all", TAPE, *argv)
    assert done.returncode == 4


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_an_agent_had_heard_is_on_the_tape_of_a_killed_recorder(cli: Cli) -> None:
    with Origin(wstalks.accepting(wstalks.echo)) as origin:
        agent = [sys.executable, str(AGENTS / "with_open_socket.py"), f"ws://127.0.0.1:{origin.port}/"]
        recorder = cli.start("record", "-o", TAPE, "--", *agent)
        assert recorder.stdout is not None
        for _ in range(30):
            assert recorder.stdout.readline() == "more erom\n"
        os.kill(recorder.pid, signal.SIGKILL)
        heard = 30 + sum(line == "more erom\n" for line in recorder.stdout)
        recorder.communicate()
    tape, ending = load(cli.cwd / TAPE)
    assert not ending.sealed
    (exchange,) = tape.exchanges
    assert exchange.end is None
    assert sum(one.data == b"erom" for one in read_frames(exchange.frames)) >= heard
    done = cli.run("replay", TAPE, "--", *agent)
    assert done.returncode == 3
    assert done.stdout.count("more erom\n") >= heard
    assert "the tape was interrupted during exchange 1" in done.stderr


def test_a_fork_serves_the_sockets_before_the_change_and_opens_the_others(cli: Cli) -> None:
    async def answer(call: Call) -> None:
        if call.request.target == "/value":
            await call.reply(b"live")
        else:
            await wstalks.accepting(wstalks.echo)(call)

    with Origin(answer) as origin:
        agent = [sys.executable, str(AGENTS / "with_socket_and_value.py"), str(origin.port)]
        recorded = cli.run("record", "-o", TAPE, "--", *agent)
        assert (recorded.returncode, recorded.stdout) == (0, "hello olleh\nlive evil\n"), recorded.stderr
        before = len(origin.requests)
        forked = cli.run("fork", TAPE, "-o", "c.tape.jsonl.gz", "--at", "2", "--body", "@edited", "--", *agent)
        assert (forked.returncode, forked.stdout) == (0, "hello olleh\nedited detide\n"), forked.stderr
        assert [request.target for request in origin.requests[before:]] == ["/second"]
    child, ending = load(cli.cwd / "c.tape.jsonl.gz")
    assert ending.sealed
    assert [one.request.source for one in child.exchanges] == ["reused", "mutated", "live"]
    assert [frame.data for frame in child.exchanges[0].frames if frame.type == "text"] == [b"hello", b"hello", b"olleh"]
    replayed = cli.run("replay", "--require-all", "c.tape.jsonl.gz", "--", *agent)
    assert (replayed.returncode, replayed.stdout) == (0, forked.stdout), replayed.stderr
