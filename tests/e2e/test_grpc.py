"""gRPC with Google's own library: recorded with TLS and without, replayed with the server stopped."""

import sys
from pathlib import Path

import pytest
from authority import Authority
from clirun import Cli

from tapeproxy.proxy.tapefile import load

pytest.importorskip("grpc", reason="grpcio is not installed")

from grpcservice import GrpcService  # it imports grpc

AGENT = Path(__file__).parent / "agents" / "with_grpc.py"


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory, home: Path, authority: Authority) -> tuple[Cli, str]:
    """A folder with a tape of the agent, and what it printed."""
    cli = Cli(tmp_path_factory.mktemp("grpc"), home)
    with GrpcService(authority.issue("localhost")) as server:
        argv = [sys.executable, str(AGENT), str(server.secure), str(server.plain)]
        done = cli.run("record", "-o", "t.tape.jsonl.gz", "--upstream-ca", str(authority.cert), "--", *argv)
    assert done.returncode == 0, done.stderr
    assert "without a lane" not in done.stderr
    return cli, done.stdout


def test_every_kind_of_call_is_heard_the_same_again(taped: tuple[Cli, str]) -> None:
    cli, heard = taped
    done = cli.run("replay", "t.tape.jsonl.gz")
    assert (done.returncode, done.stdout) == (0, heard), done.stderr
    assert "13 of 13 exchanges served, 0 violations" in done.stderr


def test_what_is_on_the_tape(taped: tuple[Cli, str]) -> None:
    tape, ending = load(taped[0].cwd / "t.tape.jsonl.gz")
    assert ending.canonical
    assert {(one.request.http, one.request.alpn) for one in tape.exchanges} == {("HTTP/2", "h2"), ("HTTP/2", None)}
    assert all(one.request.lane for one in tape.exchanges)
    assert not any(name == b"x-tapeproxy-lane" for one in tape.exchanges for name, _ in one.request.headers)
    chat = next(one for one in tape.exchanges if one.request.url.endswith(b"/Chat"))
    assert chat.request.body == b"" and [chunk.data[5:] for chunk in chat.uploads] == [
        b"message 1",
        b"message 2",
        b"message 3",
    ]
    assert chat.end is not None and dict(chat.end.trailers)[b"grpc-status"] == b"0"


def test_a_call_that_goes_on_otherwise_is_a_violation_that_says_where(taped: tuple[Cli, str]) -> None:
    cli, _ = taped
    done = cli.run("replay", "t.tape.jsonl.gz", env={"SAYS": "message two"})
    assert done.returncode == 3, done.stderr
    assert "a call went on otherwise than exchange 6, with which it had begun alike" in done.stderr
    assert "'message two'" in done.stderr and "'message 2'" in done.stderr
    # and the agent hears of it in the words of gRPC
    assert "StatusCode.FAILED_PRECONDITION a call went on otherwise" in done.stdout


def test_a_fault_meets_a_call_in_which_both_sides_speak(taped: tuple[Cli, str]) -> None:
    cli, heard = taped
    done = cli.run("replay", "t.tape.jsonl.gz", "--inject", "path=/test.Service/Chat nth=1 status=503")
    assert done.stdout.count("DEADLINE") == heard.count("DEADLINE")
    assert done.stdout.count("b're:message 1'") == 1
    assert "1 fault injected" in done.stderr


@pytest.mark.parametrize("words", [("--at", "0"), ("--at", "0", "--rerun", "changed")], ids=" ".join)
def test_a_fork_asks_such_a_call_anew_or_refuses_it_at_once(
    taped: tuple[Cli, str], authority: Authority, words: tuple[str, ...]
) -> None:
    cli, _ = taped
    with GrpcService(authority.issue("localhost")) as server:
        argv = [sys.executable, str(AGENT), str(server.secure), str(server.plain)]
        done = cli.run("record", "-o", "p.tape.jsonl.gz", "--force", "--upstream-ca", str(authority.cert), "--", *argv)
        assert done.returncode == 0, done.stderr
        heard = done.stdout
        fork = ["fork", "p.tape.jsonl.gz", *words, "-o", "c.tape.jsonl.gz", "--force"]
        done = cli.run(*fork, "--upstream-ca", str(authority.cert))
    if "changed" in words:  # what a client makes of a refusal in the middle of its writing is its own affair
        assert done.returncode == 3, done.stderr
        assert "both sides speak at once can't be answered from the tape in a fork" in done.stderr
        return
    assert (done.returncode, done.stdout) == (0, heard), done.stderr
    again = cli.run("replay", "c.tape.jsonl.gz")
    assert (again.returncode, again.stdout) == (0, heard), again.stderr
