"""Hints of an agent, through both wires: tools that ask over HTTP, order, conclusions, and the words of differences."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.hints import Bodies, calls, conclusions
from tapeproxy.testing import FakeProvider

AGENT = """
import os, random, sys, threading, time, urllib.request
from tapeproxy.hints import agent, final_state, message, received, tool, value

URL = os.environ["URL"]

def fetch(path):
    with urllib.request.urlopen(URL + path) as response:
        return response.read().decode()

@tool
def look_up(query, pages=2):
    print("look_up runs", file=sys.stderr)
    found = [fetch(f"/search?q={query}+{page}+{random.SystemRandom().random()}") for page in range(pages)]
    helper = threading.Thread(target=lambda: found.append(fetch("/search?q=helper+" + str(time.time_ns()))))
    helper.start(); helper.join()
    return {"found": len(found), "at": time.time()}

@tool
def fails(): raise ConnectionError("no line")

def work(name):
    with agent(name):
        received("chief")
        facts = look_up(name)
        fetch(f"/search?q={facts['at']}")
        message("chief", facts)

with agent("chief"):
    workers = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob")]
    for worker in workers: message(worker.name, "go"); worker.start()
    for worker in workers: worker.join()
    try: fails()
    except ConnectionError as error: print(error)
    print(look_up("last", pages=1), value("dice", lambda: random.SystemRandom().random()))
fetch("/search?q=end")
final_state({"done": True, "at": time.time()})
"""


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory, home: Path) -> tuple[Cli, str, str]:
    """A folder with the agent and its tape, what it printed, and where it asked."""
    cli = Cli(tmp_path_factory.mktemp("hints"), home)
    (cli.cwd / "agent.py").write_text(AGENT)
    with FakeProvider() as provider:
        done = cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "agent.py", env={"URL": provider.url})
    assert done.returncode == 0, done.stderr
    assert "5 tool calls" in done.stderr
    return cli, done.stdout, provider.url


def test_what_bodies_asked_for_is_covered_by_their_calls(taped: tuple[Cli, str, str]) -> None:
    cli, printed, url = taped
    done = cli.run("replay", "t.jsonl.gz", "--require-all", "--report", "r.json", env={"URL": url})
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert "look_up runs" not in done.stderr
    assert "3 of 11 exchanges served, 5 tool calls served, 8 within tool calls, 0 violations" in done.stderr
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (report["tools"], len(report["covered"]), report["unused"]) == (5, 8, [])
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert tape.seal is not None
    assert report["trace"] == tape.seal.trace
    within = Bodies(tape).exchanges(tape)
    assert sorted(number for numbers in within.values() for number in numbers) == report["covered"]
    assert {lane.rpartition("/")[0] for lane in within} == {"m", "m/t0", "m/t1"}


def test_replays_are_identical_and_as_sealed(taped: tuple[Cli, str, str]) -> None:
    cli, _, url = taped
    done = cli.run("verify", "--times", "3", "--json", "t.jsonl.gz", env={"URL": url})
    assert done.returncode == 0, done.stdout
    assert (json.loads(done.stdout)["identical"], json.loads(done.stdout)["as_sealed"]) == (3, True)


def test_bodies_run_with_tools_live_and_hear_the_tape(taped: tuple[Cli, str, str]) -> None:
    cli, printed, url = taped
    done = cli.run("replay", "--tools", "live", "t.jsonl.gz", env={"URL": url})
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert done.stderr.count("look_up runs") == 3
    assert "11 of 11 exchanges served, 0 violations" in done.stderr


def test_the_tape_says_who_is_who_and_what_was_concluded(taped: tuple[Cli, str, str]) -> None:
    tape, _ = load(taped[0].cwd / "t.jsonl.gz")
    names = {lane.id: lane.name for lane in tape.lanes if lane.asked is not None}
    assert names == {"m": "chief", "m/t0": "ann", "m/t1": "bob"}
    titles = sorted(call.title for call in calls(tape))
    assert titles == [
        "fails()",
        'look_up(pages=1, query="last")',
        'look_up(query="ann")',
        'look_up(query="bob")',
        "value dice",
    ]
    (final,) = conclusions(tape)
    assert final.content is not None
    assert json.loads(final.content)["done"] is True
    assert all(0 < call.value.data["began"] < call.value.data["ended"] < 10**12 for call in calls(tape))


CHANGES = {
    "arguments": (
        ('"last"', '"least"'),
        3,
        [
            'violation: the tool is called with other arguments than on the tape, where look_up(pages=1, query="last")',
            'request: look_up(pages=1, query="least") in lane m at',
            "$.query",
            "tape: last",
            "now:  least",
        ],
    ),
    "another conclusion": (
        ('"done": True', '"done": False'),
        4,
        ["drift: the run concludes something else than on the tape", "$.done", "tape: true", "now:  false"],
    ),
    "no conclusion": (("final_state({", "str({"), 4, ["drift: the run did not conclude what it did on the tape"]),
    "two conclusions": (
        ('fetch("/search?q=end")', 'final_state(1); fetch("/search?q=end")'),
        4,
        ["drift: the run concludes something else", "drift: the run concludes more than on the tape"],
    ),
    "another message": (('"go")', '"went")'), 4, ["drift: the message is another one than on the tape", "tape: go"]),
    "a call left out": (
        ("    try: fails()", "    try: pass"),
        4,
        [
            "drift: the lane came another way to this call than on the tape",
            "tape: number 2",
            "now:  number 1",
            "note: a tool call on the tape was not made: fails()",
        ],
    ),
    "a request more before": (
        ("    print(look_up", '    fetch("/search?q=end"); print(look_up'),
        3,
        ["requests of the lane before it", "the tape has this request once"],
    ),
}


@pytest.mark.parametrize("change, code, said", CHANGES.values(), ids=CHANGES)
def test_what_differs_is_told(
    change: tuple[str, str], code: int, said: list[str], taped: tuple[Cli, str, str], tmp_path: Path
) -> None:
    cli, _, url = taped
    (tmp_path / "changed.py").write_text(AGENT.replace(*change))
    argv = [sys.executable, str(tmp_path / "changed.py")]
    done = cli.run("replay", "t.jsonl.gz", "--", *argv, env={"URL": url})
    assert done.returncode == code, done.stderr
    assert [line for line in said if line not in done.stderr] == [], done.stderr


def test_what_follows_a_call_comes_after_all_that_its_body_heard(taped: tuple[Cli, str, str]) -> None:
    tape, _ = load(taped[0].cwd / "t.jsonl.gz")
    causality = Causality.of(tape)
    within = Bodies(tape).exchanges(tape)
    for worker in ("m/t0", "m/t1"):
        (after,) = [one.number for one in tape.exchanges if one.request.lane == worker]
        assert all(causality.before(number, after) for number in within[f"{worker}/k0"])
        assert not any(causality.before(number, after) for number in within["m/k1"])
    (last,) = [one.number for one in tape.exchanges if one.request.lane == "m"]
    assert all(causality.before(one.number, last) for one in tape.exchanges if one.number != last)


FORKED = """
import os, sys, threading, time, urllib.request
from tapeproxy.hints import agent, final_state, message, tool

def fetch(path):
    with urllib.request.urlopen(os.environ["URL"] + path) as response:
        return response.read().decode()

@tool
def look_up(name, known):
    print(f"{name} runs", file=sys.stderr)
    return [fetch(f"/search?q={name}+{time.time_ns()}"), time.time_ns()]

def work(name):
    with agent(name):
        before = look_up(name, 0)
        known = fetch(f"/search?q={name}")
        found[name] = [known, before[1], look_up(name, len(known))[1]]
        message("chief", found[name])

found = {}
workers = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob")]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(sorted(found.items()))
final_state(found)
"""


def test_a_fork_serves_tools_outside_of_the_future_and_runs_those_inside(cli: Cli) -> None:
    (cli.cwd / "agent.py").write_text(FORKED)
    with FakeProvider() as provider:
        env = {"URL": provider.url}
        done = cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "agent.py", env=env)
        assert done.returncode == 0, done.stderr
        tape, _ = load(cli.cwd / "t.jsonl.gz")
        (edited,) = [one.number for one in tape.exchanges if one.request.url.endswith(b"?q=ann")]
        asked = len(provider.requests)
        done = cli.run("fork", "t.jsonl.gz", "--at", str(edited), "--body", "@other", "-o", "c.jsonl.gz", env=env)
        assert done.returncode == 0, done.stderr
        assert len(provider.requests) == asked + 1
    assert "drift" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.endswith(" runs")] == ["ann runs"]
    child, _ = load(cli.cwd / "c.jsonl.gz")
    was, now = ({(one.value.lane, one.lane): one.value.content for one in calls(of)} for of in (tape, child))
    assert was.keys() == now.keys()
    assert [lane for (_, lane), content in was.items() if now[_, lane] != content] == ["m/t0/k1"]
    assert all(0 < one.value.data["began"] < one.value.data["ended"] < 10**12 for one in calls(child))
    replayed = cli.run("replay", "c.jsonl.gz", env=env)
    assert (replayed.returncode, replayed.stdout) == (0, done.stdout), replayed.stderr
    assert "4 tool calls served" in replayed.stderr


def test_a_tape_made_without_hints_runs_the_tools(cli: Cli) -> None:
    plain = 'import urllib.request, os\nprint(urllib.request.urlopen(os.environ["URL"] + "/search?q=a").status)\n'
    hinted = (
        f"from tapeproxy.hints import tool, final_state\n@tool\ndef go():\n    {plain.replace(chr(10), '; ', 1)}go()\n"
    )
    with FakeProvider() as provider:
        env = {"URL": provider.url}
        assert cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "-c", plain, env=env).returncode == 0
        done = cli.run("replay", "t.jsonl.gz", "--", sys.executable, "-c", f"{hinted}final_state(1)", env=env)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
    assert "note: hints: the tape was made without them: tools run" in done.stderr


def test_what_cannot_be_taped_is_warned_of(cli: Cli) -> None:
    code = "from tapeproxy.hints import tool\n@tool\ndef lock():\n    import threading; return threading.Lock()\nlock()"
    done = cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "-c", code)
    assert done.returncode == 0
    assert "what a tool gave is not on the tape" in done.stderr
    assert "it is a lock, which has no form in JSON" in done.stderr
    replayed = cli.run("replay", "t.jsonl.gz")
    assert replayed.returncode == 3
    assert "what it gave is not on the tape: it is a lock" in replayed.stderr
