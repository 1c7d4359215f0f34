"""Two workers that run at the same time: the tape tells who knew what, and each replay finds the same."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps
from programruns import Seen, replay, taped

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Json
from tapeproxy.testing import FakeProvider

PROGRAM = Path(__file__).parent / "programs" / "two_workers.py"
KINDS = {
    "threads": ("m/t0", "m/t1", "m"),
    "pool": ("m/w0", "m/w1", "m"),
    "queues": ("m/t0", "m/t1", "m"),
    "tasks": ("m/a0/a0", "m/a0/a1", "m"),
    "joined": ("m/t0", "m/t1", "m"),
    "loop": ("m/a0/a0", "m/a0/a1", "m"),
}


SLOW: Json = {"reply": [{"text": "yes", "delay_ms": 60}]}
TEAM = Path(__file__).parents[2] / "examples"
SCRIPT = TEAM / "provider.toml"


def record(cli: Cli, home: Path, *argv: str, tape: str = "t.jsonl.gz", script: Json | Path = SLOW) -> Tape:
    """Record the program against a provider that takes 60 ms for an answer."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=script, tls=tls) as provider:
        done = cli.run("record", "-o", tape, *maps(provider.url), "--", sys.executable, *argv, keys=script is not SLOW)
    assert done.returncode == 0, done.stderr
    return load(cli.cwd / tape)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_tape_tells_who_knew_what(kind: str, cli: Cli, home: Path) -> None:
    alice, bob, main = KINDS[kind]
    tape = record(cli, home, str(PROGRAM), kind)
    causality = Causality.of(tape)
    at = {(one.request.lane, one.request.n): one.number for one in tape.exchanges}
    first, last = at[main, 0], at[main, 1]
    assert causality.order() == (first, at[alice, 0], at[bob, 0], at[alice, 1], at[bob, 1], last)
    assert causality.future(at[alice, 0]) == {at[alice, 1], last}
    assert causality.clock(at[bob, 1]) == {main: 2, bob: 3}
    assert causality.clock(last) == {main: 3, alice: 4, bob: 4}
    begun = [tape.exchanges[at[lane, 0] - 1].request.t for lane in (alice, bob)]
    ends = [tape.exchanges[at[lane, 1] - 1].end for lane in (alice, bob)]
    assert max(begun) < min(end.t for end in ends if end is not None), "the workers did not overlap"
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (done.returncode, report["drifts"], report["notes"]) == (0, [], []), done.stderr


@pytest.mark.parametrize(
    ("agent", "times"),
    [
        ("two_workers", 3),
        pytest.param("two_workers", 50, marks=pytest.mark.soak),
        pytest.param("team", 50, marks=pytest.mark.soak),
    ],
)
def test_recordings_and_their_replays_agree_in_bytes_and_clocks(agent: str, times: int, cli: Cli, home: Path) -> None:
    """The workers run at the same time, in whatever order; what each asked, and knew then, is always the same.

    The example's search finds something else each time, so its recordings ask for other things.
    """
    argv, script = ([str(PROGRAM), "threads"], SLOW) if agent == "two_workers" else ([str(TEAM / "team.py")], SCRIPT)
    known, asked, orders = [], [], set[tuple[str | None, ...]]()
    for number in range(times):
        name = f"{number}.jsonl.gz"
        tape = record(cli, home, *argv, tape=name, script=script)
        causality = Causality.of(tape)
        known.append({(x.request.lane, x.request.n): dict(causality.clock(x.number)) for x in tape.exchanges})
        asked.append({(x.request.lane, x.request.n): x.request_body for x in tape.exchanges})
        orders.add(tuple(x.request.lane for x in tape.exchanges))
        assert replay(cli, name).requests == Seen("", taped(cli.cwd / name)).requests
    assert known == [known[0]] * times
    assert agent == "team" or asked == [asked[0]] * times
    assert times < 50 or len(orders) > 1, "the workers always went in the same order"


WAITS = """
import sys, threading, urllib.request
def ask(text):
    body = b'{"model": "m", "messages": [{"role": "user", "content": "%s"}]}' % text
    headers = {"content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request("https://api.openai.com/v1/chat/completions", body, headers)).read()
thread = threading.Thread(target=ask, args=(b"work",), name="worker")
thread.start()
if "join" in sys.argv: thread.join()
ask(b"the rest")
thread.join()
"""


def test_a_lane_that_knows_less_than_on_the_tape_is_a_drift_that_names_the_edge(cli: Cli, home: Path) -> None:
    record(cli, home, "-c", WAITS, "join")
    again = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    assert again.returncode == 0, again.stderr
    other = [sys.executable, "-c", WAITS, "no"]
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json", "--", *other)
    assert done.returncode == 4, done.stderr
    (drift,) = json.loads((cli.cwd / "r.json").read_text())["drifts"]
    assert drift["what"] == "lane m knew of other answers than on the tape when it made the request of exchange 2"
    (difference,) = drift["differences"]
    assert (difference["taped"], difference["asked"]) == ("join of worker (m/t0) after its request 1", None)
    assert cli.run("replay", "t.jsonl.gz", "--no-edges", "--", *other).returncode == 0


def test_servers_of_the_run_know_what_their_clients_knew_and_clients_their_answers(cli: Cli, home: Path) -> None:
    tape = record(cli, home, str(PROGRAM.with_name("server_processes.py")))
    causality = Causality.of(tape)
    numbers = {(one.request.lane, one.request.n): one.number for one in tape.exchanges}
    plan, last = numbers["m", 0], numbers["m", 1]
    alice, bob = (next(one for one in numbers if (one[0] or "").startswith(f"m/p{n}/")) for n in range(2))
    calls = {one.number for one in tape.exchanges if one.request.inside}
    assert calls == {numbers["m/t0", 0], numbers["m/t1", 0]}
    assert causality.future(plan) == {*numbers.values()} - {plan}
    assert causality.future(numbers[alice]) == {last}
    assert causality.clock(numbers[alice])["m/t0"] == 1
    assert "m/t1" not in causality.clock(numbers[alice])
    order = causality.order()
    assert order.index(numbers["m/t0", 0]) < order.index(numbers[alice])
    assert {*causality.clock(last)} == {"m", "m/t0", "m/t1", alice[0], bob[0]}
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    report = json.loads((cli.cwd / "r.json").read_text())
    # In which order two servers of the run answer is theirs: a note at most.
    assert (done.returncode, report["drifts"], report["violations"]) == (0, [], []), done.stderr


QUIET = """
import asyncio, os, sys, threading, urllib.request
from concurrent.futures import ThreadPoolExecutor
kind, text = sys.argv[1], os.environ.get("TEXT", "as taped")
def ask():
    body = ('{"model": "m", "messages": [{"role": "user", "content": "%s"}]}' % text).encode()
    headers = {"content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request("https://api.openai.com/v1/chat/completions", body, headers)).read()
async def main():
    async def ask_later(): ask()
    task = asyncio.create_task(ask_later(), name="worker")
    await asyncio.wait([task])
if kind == "thread":
    threading.excepthook = lambda args: None
    thread = threading.Thread(target=ask, name="worker")
    thread.start(); thread.join()
elif kind == "pool":
    with ThreadPoolExecutor(1) as pool: pool.submit(ask)
else:
    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("kind", "lane", "name"), [("thread", "m/t0", "worker"), ("pool", "m/w0", ""), ("task", "m/a0/a0", "worker")]
)
def test_a_violation_in_a_worker_is_loud_though_nobody_looks_at_its_exception(
    kind: str, lane: str, name: str, cli: Cli, home: Path
) -> None:
    record(cli, home, "-c", QUIET, kind)
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json", env={"TEXT": "another"})
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (done.returncode, report["agent_exit_code"]) == (3, 0), done.stderr
    (violation,) = report["violations"]
    assert (violation["lane"], violation["lane_name"]) == (lane, name)
    assert f"  lane: {lane}" + (f", called {name}" if name else "") in done.stderr
