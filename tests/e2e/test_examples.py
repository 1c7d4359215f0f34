"""The examples, recorded and replayed: identical output, and no connection for anything but the proxy."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hints import calls
from tapeproxy.testing import FakeProvider

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "openai_tools": ([], ["get_weather", "12 °C and dry in Lima."], ["/v1/chat/completions"] * 2),
    "anthropic_stream": (["Why so blue?"], ["Why so blue?", " in, "], ["/v1/messages"]),
    "anthropic_stream_async": ([], ["Argue for it.", "Argue against it.", " pieces: "], ["/v1/messages"] * 2),
    "research": ([], ["search ", '"slug":"tides"'], ["/v1/chat/completions", "/search", "/v1/chat/completions"]),
    "local_server": ([], ['stock {"item": "tape"}', '"count": 12'], ["/v1/responses"] * 2),
}
"""Examples: their words on the command line, what they say, and what they ask the provider for."""


class Taped(NamedTuple):
    """An example that was recorded: its tape and what it printed. The provider is gone."""

    tape: str
    output: str


@pytest.fixture(scope="session")
def taped(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Callable[[str], Taped]:
    """Records an example, once for all tests that a worker runs."""

    @cache
    def record(agent: str) -> Taped:
        cli = Cli(tmp_path_factory.mktemp(agent), home)
        tls = CertificateAuthority.open(home).server_context("127.0.0.1")
        words, said, paths = AGENTS[agent]
        with FakeProvider(tls=tls) as provider:
            argv = [sys.executable, "-W", "error", str(EXAMPLES / f"{agent}.py"), *words]
            recorded = cli.run("record", "-q", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
        assert (recorded.returncode, recorded.stderr) == (0, "")
        assert [part for part in said if part not in recorded.stdout] == []
        assert [request.path for request in provider.requests] == paths
        return Taped(str(cli.cwd / "t.jsonl.gz"), recorded.stdout)

    return record


@pytest.mark.parametrize("agent", AGENTS)
def test_an_example_replays_with_the_provider_stopped_and_no_key(
    agent: str, cli: Cli, taped: Callable[[str], Taped]
) -> None:
    tape, output = taped(agent)
    replayed = cli.run("replay", tape, "--pace", "20" if agent == "anthropic_stream" else "none")
    assert (replayed.returncode, replayed.stdout) == (0, output), replayed.stderr
    tape_of = load(Path(tape))[0]
    if agent == "local_server":  # which is the run's own
        inside = [exchange for exchange in tape_of.exchanges if exchange.request.inside]
        total = len(tape_of.exchanges)
        assert inside
        assert f"{total - len(inside)} of {total} exchanges served, {len(inside)} inside the run" in replayed.stderr


@pytest.mark.parametrize("agent", ["team", pytest.param("team_processes/planner", marks=pytest.mark.soak)])
def test_a_team_whose_workers_overlap_is_the_same_in_every_replay(agent: str, cli: Cli, scripted: FakeProvider) -> None:
    argv = [sys.executable, str(EXAMPLES / f"{agent}.py")]
    recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(scripted.url), "--", *argv, keys=True)
    assert recorded.returncode == 0, recorded.stderr
    scripted.stop()
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    workers = [names_of(tape, name) for name in ("worker_a", "worker_b")]
    spans = [[span for lane, span in asked(tape) if lane == worker] for worker in workers]
    assert [len(found) for found in spans] == [2, 2]
    assert any(a[0] < b[1] and b[0] < a[1] for a in spans[0] for b in spans[1]), spans
    assert {call.value.lane for call in calls(tape)} == set(workers)
    done = cli.run("verify", "--times", "2", "--json", "t.jsonl.gz")
    assert done.returncode == 0, done.stdout
    verified = json.loads(done.stdout)
    assert (verified["identical"], verified["as_sealed"]) == (2, True)


def names_of(tape: Tape, name: str) -> str:
    """The lane in which this agent asks its model."""
    (lane,) = [lane.id for lane in tape.lanes if lane.name == name and lane.asked is not None]
    return lane


def asked(tape: Tape) -> list[tuple[str | None, tuple[int, int]]]:
    """The lane of each exchange with the world, and when it began and ended."""
    return [
        (exchange.request.lane, (exchange.request.t, exchange.end.t))
        for exchange in tape.exchanges
        if exchange.end is not None and not exchange.request.inside
    ]


def test_another_prompt_is_a_violation_that_is_explained(cli: Cli, taped: Callable[[str], Taped]) -> None:
    argv = [sys.executable, str(EXAMPLES / "openai_tools.py")]
    replayed = cli.run("replay", taped("openai_tools").tape, "--", *argv, "What is the weather in Oslo?")
    assert replayed.returncode == 3
    assert "this request is not on the tape" in replayed.stderr
    assert "body $.messages[0].content" in replayed.stderr
    assert "tape: What is the weather in Lima?" in replayed.stderr
    assert "now:  What is the weather in Oslo?" in replayed.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("agent", ["research", pytest.param("anthropic_stream_async", marks=pytest.mark.soak)])
def test_nothing_connects_to_anything_but_the_proxy(agent: str, cli: Cli, taped: Callable[[str], Taped]) -> None:
    log = cli.cwd / "strace.log"
    strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o", str(log)]
    done = subprocess.run(
        [*strace, *cli.argv("replay", taped(agent).tape)],
        cwd=cli.cwd,
        env=cli.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "PTRACE" in done.stderr:
        pytest.skip("this machine does not allow tracing")
    assert done.returncode == 0, done.stderr
    # Questions to the kernel about its sockets go nowhere, but hold addresses.
    text = "\n".join(line for line in log.read_text().splitlines() if "SOCK_DIAG_BY_FAMILY" not in line)
    addresses = set(re.findall(r'inet_(?:addr|pton)\((?:AF_INET6, )?"([^"]+)"', text))
    ports = set(re.findall(r"sin6?_port=htons\((\d+)\)", text))
    assert addresses == {"127.0.0.1"}
    assert len(ports) == 1


def test_the_real_host_hears_nothing_in_a_replay(cli: Cli) -> None:
    """A listening trap: the very host and port that was recorded is up during the replay, and is not asked."""
    agent = cli.cwd / "agent.py"
    agent.write_text(
        "import os, httpx\n"
        "with httpx.Client() as c:\n"
        "    print(c.get(os.environ['TRAP'] + '/search?q=tide').text, c.get(os.environ['TRAP'] + '/x').status_code)\n"
    )
    with FakeProvider() as trap:
        env = {"TRAP": trap.url}
        recorded = cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, str(agent), env=env)
        assert recorded.returncode == 0, recorded.stderr
        heard = len(trap.requests)
        assert heard == 2
        replayed = cli.run("replay", "t.jsonl.gz", env=env)
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout)
        assert len(trap.requests) == heard
        violating = cli.run(
            "replay", "t.jsonl.gz", "--", sys.executable, "-c", f"import httpx; httpx.get('{trap.url}/new')"
        )
        assert violating.returncode == 3
        assert len(trap.requests) == heard
