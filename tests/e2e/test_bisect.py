"""Bisecting by event, with a live server: an agent of 26 steps hears one poisoned answer, and dies of it at the end.

The tape is made while the server poisons one step; afterwards it is well, so whatever is asked anew is good.
"""

import asyncio
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from clirun import Cli

from tapeproxy.proxy.bisecting import Told, search
from tapeproxy.proxy.forked import ForkSettings
from tapeproxy.proxy.hybrid import open_parent
from tapeproxy.proxy.recorded import RecordSettings
from tapeproxy.proxy.recording import record
from tapeproxy.proxy.stepprobes import StepProbes, StepSettings
from tapeproxy.tapes.bisecting import Found, Unsound, search_turn
from tapeproxy.tapes.forkplan import ForkPlan

STEPS = 26
MOST = math.ceil(math.log2(STEPS)) + 2
# Each step sends what the one before it heard. Of a poisoned run a share shows it: which ones, a seed and a count say,
# because all that the agent itself could draw is the tape's.
AGENT = f"""
import json, os, pathlib, random, sys, urllib.request

heard = ""
poisoned = False
for step in range({STEPS}):
    body = json.dumps({{"step": step, "last": heard}}).encode()
    asked = urllib.request.Request("http://tool.test/step", body, {{"Content-Type": "application/json"}})
    heard = json.load(urllib.request.urlopen(asked, timeout=20))["result"]
    poisoned |= heard == "poison"
runs = pathlib.Path(os.environ.get("RUNS", "runs"))
count = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (count + 1))
shows = random.Random(f"{{os.environ.get('SEED')}} {{count}}").random() < float(os.environ.get("SHARE", "1"))
print("done")
sys.exit(poisoned and shows)
"""


class Tool(ThreadingHTTPServer):
    """The tool. `poisoned`: the step that it answers wrongly; None: it is well."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.poisoned: int | None = None
        self.answered = 0

    @property
    def hosts(self) -> dict[str, str]:
        return {"tool.test": f"http://127.0.0.1:{self.server_port}"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        tool = self.server
        assert isinstance(tool, Tool)
        step = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["step"]
        tool.answered += 1
        result = "poison" if step == tool.poisoned else f"result {step}"
        body = json.dumps({"result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    server = Tool()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def here(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAPEPROXY_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bad_tape(folder: Path, tool: Tool, poisoned: int, environment: dict[str, str]) -> Path:
    """Record the run that hears poison at a step."""
    tool.poisoned = poisoned
    path = folder / f"bad-{poisoned}.tape.jsonl.gz"
    settings = RecordSettings(
        tape=path,
        argv=(sys.executable, "-c", AGENT),
        environment=environment | {"SHARE": "1"},
        cwd=str(folder),
        hosts=tool.hosts,
    )
    recorded = asyncio.run(record(settings))
    tool.poisoned = None
    assert recorded.outcome is not None
    assert (recorded.outcome.exit_code, recorded.exchanges) == (1, STEPS)
    return path


def bisected(
    folder: Path, tool: Tool, poisoned: int, *, repeats: int = 1, share: float = 1
) -> tuple[Found | Unsound, StepProbes, list[Told]]:
    """Record a bad run, and search for its poison."""
    environment = {"PATH": os.environ["PATH"], "SEED": str(poisoned), "RUNS": str(folder / f"runs-{poisoned}")}
    parent = open_parent(bad_tape(folder, tool, poisoned, environment))
    probes_folder = folder / f"probes-{poisoned}"
    probes_folder.mkdir()
    fork = ForkSettings(
        parent=parent,
        plan=ForkPlan(),
        out=probes_folder,
        environment=environment | {"SHARE": str(share)},
        cwd=str(folder),
        hosts=tool.hosts,
    )
    probes = StepProbes(StepSettings(fork=fork, folder=probes_folder))
    told: list[Told] = []
    found = asyncio.run(search(search_turn(len(probes.events), repeats=repeats), probes.make, told.append))
    return found, probes, told


@pytest.mark.parametrize("poisoned", random.Random(26).sample(range(STEPS), 1))
def test_the_poisoned_answer_is_found(poisoned: int, here: Path, tool: Tool) -> None:
    before = tool.answered
    found, probes, told = bisected(here, tool, poisoned)
    assert isinstance(found, Found), told
    assert probes.event(found.bad) == poisoned + 1
    exchange = probes.tape.exchanges[poisoned]
    assert json.loads(exchange.response_body) == {"result": "poison"}
    assert json.loads(exchange.request_body)["step"] == poisoned
    assert (found.bad, found.good) == (poisoned + 1, poisoned)
    assert len(told) <= MOST
    live = sum(STEPS - one.probe.place for one in told)
    assert tool.answered - before == STEPS + live, "what the tape answers is asked of nobody"


# What is wrong is what a local function gave; every answer is innocent. Half of it is done by a thread.
TOOLS = """
import json, os, sys, threading, urllib.request
from tapeproxy.hints import tool

heard = []

@tool
def step(n):
    return "poison" if os.environ.get("POISON") == str(n) else f"result {n}"

def rounds(first, end):
    for n in range(first, end):
        if "quiet" not in sys.argv:
            body = json.dumps({"step": n, "last": heard[-1:]}).encode()
            asked = urllib.request.Request("http://tool.test/step", body, {"Content-Type": "application/json"})
            urllib.request.urlopen(asked, timeout=20).read()
        heard.append(step(n))

thread = threading.Thread(target=rounds, args=(0, 4))
thread.start()
thread.join()
rounds(4, 8)
sys.exit("poison" in heard)
"""


@pytest.mark.parametrize(
    ("poisoned", "words", "bad", "good"),
    [(2, (), "m/t0#2", 3), (5, (), "m#1", 6), (0, ("quiet",), "m/t0#0", None), (4, ("quiet",), "m#0", "m/t0#3")],
)
def test_a_poisoned_call_of_a_tool_is_found(
    poisoned: int, words: tuple[str, ...], bad: str, good: int | str | None, cli: Cli, tool: Tool
) -> None:
    maps = [word for host, url in tool.hosts.items() for word in ("--map", f"{host}={url}")]
    agent = ["--", sys.executable, "-c", TOOLS, *words]
    recorded = cli.run("record", "-o", "bad.tape.jsonl.gz", *maps, *agent, env={"POISON": str(poisoned)})
    assert recorded.returncode == 1, recorded.stderr
    done = bisect(cli, Path("bad.tape.jsonl.gz"), tool, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["bad"]["event"], found["good"], found["skipped"]) == (bad, good, [])
    assert (found["bad"]["call"], found["bad"]["gave"]) == (f"step(n={poisoned})", '"poison"')
    events = 8 if words else 16
    assert len(found["probes"]) <= math.ceil(math.log2(events)) + 2


@pytest.mark.soak
def test_twenty_places_of_twenty(here: Path, tool: Tool) -> None:
    places = random.Random(20).choices(range(STEPS), k=20)
    for n, poisoned in enumerate(places):
        folder = here / str(n)
        folder.mkdir()
        found, _, told = bisected(folder, tool, poisoned)
        assert isinstance(found, Found), told
        assert found.bad == poisoned + 1
        assert len(told) <= MOST


@pytest.mark.soak
def test_a_failure_that_shows_in_seven_of_ten_runs(here: Path, tool: Tool) -> None:
    hits = 0
    for n, poisoned in enumerate(random.Random(70).choices(range(STEPS), k=20)):
        folder = here / str(n)
        folder.mkdir()
        found, _, told = bisected(folder, tool, poisoned, repeats=5, share=0.7)
        assert len({one.probe.place for one in told}) <= MOST
        hits += isinstance(found, Found) and found.bad == poisoned + 1
    assert hits >= 18


@pytest.fixture(scope="module")
def tape(tool: Tool, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One bad run for all who only look at it."""
    folder = tmp_path_factory.mktemp("bad")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TAPEPROXY_HOME", str(home))
        patched.chdir(folder)
        return bad_tape(folder, tool, 2, Cli(folder, home).environment())


@pytest.fixture
def cli(here: Path, home: Path) -> Cli:
    return Cli(here, home)


def bisect(cli: Cli, tape: Path, tool: Tool, *words: str) -> subprocess.CompletedProcess[str]:
    maps = [word for host, url in tool.hosts.items() for word in ("--map", f"{host}={url}")]
    return cli.run("bisect", str(tape), *maps, *words)


def test_the_command(cli: Cli, tool: Tool, tape: Path) -> None:
    done = bisect(cli, tape, tool)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "first bad event: 3"
    assert lines[2] == "  request  POST http://tool.test/step"
    assert lines[3].endswith(f"tapeproxy show {tape} 3")
    assert lines[4] == "last good event: 2"
    assert int(lines[5].split()[0]) <= MOST
    told = [line for line in done.stderr.splitlines() if line.startswith("tapeproxy: probe ")]
    assert told[0].startswith("tapeproxy: probe 1 (of 26 events): first 26 events taped: bad, ")
    assert len(told) == int(lines[5].split()[0])

    # The same by a predicate on the children's tapes, which are kept, replay and can be looked at.
    predicate = "$.answers[*].body.result!=poison"
    done = bisect(cli, tape, tool, "--predicate", predicate, "--json", "--keep", "probes", "--", *argv())
    found = json.loads(done.stdout)
    assert (found["bad"]["event"], found["good"], found["skipped"]) == (3, 2, [])
    assert found["bad"]["lane"] == "m"
    assert [probe["place"] for probe in found["probes"]][:2] == [26, 0]
    assert cli.run("replay", "probes/first-3.tape.jsonl.gz").returncode == 1
    assert cli.run("replay", "probes/first-2.tape.jsonl.gz").returncode == 0
    assert (cli.cwd / "probes" / "first-2.tape.jsonl.stdout").read_text() == "done\n"


def argv() -> list[str]:
    return [sys.executable, "-c", AGENT]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--predicate", "$.exit=1"], "the check does not fail with all of the tape"),
        (["--check", "false"], "the check fails with nothing of the tape"),
        (["--check", "exit 125"], "with all of the tape the run cannot be tested"),
        (
            ["--", sys.executable, "-c", AGENT.replace("heard}", "heard + 'x'}")],
            "cannot be tested: this request is not",
        ),
    ],
)
def test_what_cannot_be_searched(words: list[str], said: str, cli: Cli, tool: Tool, tape: Path) -> None:
    done = bisect(cli, tape, tool, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_a_probe_no_agent_is_left(number: int, cli: Cli, tape: Path) -> None:
    # The agent's end of the pipe is closed when it is gone, and whatever it has started.
    fifo = cli.cwd / "fifo"
    os.mkfifo(fifo)
    agent = "import time; held = open('fifo', 'w'); print('there', file=held, flush=True); time.sleep(90)"
    process = cli.start("bisect", str(tape), "--", sys.executable, "-c", agent)
    with fifo.open() as reader:
        assert reader.readline() == "there\n"
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
        assert reader.read() == ""
    assert (process.returncode, "tapeproxy: stopped" in stderr) == (130, True), stderr
