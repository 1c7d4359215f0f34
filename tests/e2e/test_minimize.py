"""`tapeproxy minimize` with a real SDK, streams and tool calls: recorded with the shim, minimized offline, replayed."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

# Asks in turn, tells each time what it heard before, and looks at the clock and at chance like any agent.
AGENT = """
import random, time, uuid
from openai import OpenAI

client = OpenAI(max_retries=0)
messages = [{"role": "system", "content": f"run {uuid.uuid4()}"}]
heard = []
for question in ("first", "second", "third", "fourth"):
    time.sleep(0.01 * random.random())
    messages.append({"role": "user", "content": f"{question}, at {time.time()}"})
    if question == "second":
        stream = client.chat.completions.create(model="m", messages=messages, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    else:
        text = client.chat.completions.create(model="m", messages=messages).choices[0].message.content or ""
    heard.append(text)
    messages.append({"role": "assistant", "content": text})
print(len(heard))
if "sesame" in heard[1] and "open" in heard[3]:
    raise SystemExit(9)
"""
# The same without the SDK, whose import is most of what a probe takes. Requests are not compared, so the tape will do.
LIGHT = """
import json, urllib.request
heard = []
for _ in range(4):
    asked = urllib.request.Request("https://api.openai.com/light", json.dumps(heard).encode(), method="POST")
    heard.append(urllib.request.urlopen(asked, timeout=20).read().decode())
if "sesame" in heard[1] and "open" in heard[3]:
    raise SystemExit(9)
"""
SCRIPT = {
    "reply": [
        {"when": {"user": "first"}, "text": "Nothing here."},
        {"when": {"user": "second"}, "text": "A seed called sesame, and some more words."},
        {"when": {"user": "third"}, "text": "Nothing here either."},
        {"when": {"user": "fourth"}, "text": "It stands open."},
    ]
}


@pytest.fixture(scope="module")
def tape(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("run")
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=SCRIPT, tls=tls) as provider:
        argv = [sys.executable, "-c", AGENT]
        done = Cli(folder, home).run("record", "-o", "bad.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert done.returncode == 9, done.stderr
    yield folder / "bad.tape.jsonl.gz"


TEXTS = [(2, "A seed called sesame, and some more words."), (4, "It stands open.")]


@pytest.mark.soak
def test_the_sdk_takes_neutral_answers_and_the_small_tape_replays(cli: Cli, tape: Path) -> None:
    # An import of the SDK is most of a probe: a few will do.
    done = cli.run("minimize", str(tape), "-o", "small.tape.jsonl.gz", "-j", "2", "--json", "--max-probes", "5")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    kept = [(value["exchange"], value["value"]) for value in found["kept"]]
    assert {*TEXTS} <= {*kept}
    assert len(kept) < found["values"]
    assert (found["failure"], found["exchanges"]) == ("exit code 9", 4)
    assert cli.run("verify", "small.tape.jsonl.gz").returncode == 0
    again = cli.run("replay", "small.tape.jsonl.gz", "--report", "r.json")
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (again.returncode, report["violations"], report["drifts"], report["unused"]) == (9, [], [], [])


def test_two_texts_of_four_are_what_matters(cli: Cli, tape: Path) -> None:
    done = cli.run("minimize", str(tape), "-o", "small.tape.jsonl.gz", "--json", *light())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(value["exchange"], value["value"]) for value in found["kept"]] == TEXTS
    assert (found["stopped"], found["differences"]) == (None, [])
    assert done.stderr.count("tapeproxy: probe ") == found["probes"]
    asked = load(cli.cwd / "small.tape.jsonl.gz")[0].exchanges[3].request_body
    assert b"sesame" in asked
    assert b"Nothing" not in asked


def light() -> list[str]:
    return ["--", sys.executable, "-c", LIGHT]


def test_what_is_said(cli: Cli, tape: Path) -> None:
    words = ["minimize", str(tape), "-o", "small.tape.jsonl.gz", "--max-probes", "6", "--text", "OK."]
    done = cli.run(*words, "--predicate", "$.exit!=9", *light())
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "failure: the check fails"
    assert lines[1].startswith("the search ended early: 6 probes were made")
    assert lines[2].startswith("it needs ")
    assert any(line.startswith("  exchange 4  $.choices[0].message.content  ") for line in lines)
    assert lines[-1].endswith("to see it fail: tapeproxy replay small.tape.jsonl.gz")
    assert cli.run("replay", "small.tape.jsonl.gz").returncode == 9


READER = """
import json
conf = json.load(open("conf.json"))
names = open("names.txt").read().split()
if conf["limits"]["high"] > 5 and "eve" in names:
    raise SystemExit(9)
"""


def test_what_was_read_from_files_counts_where_it_is_on_the_tape(cli: Cli) -> None:
    (cli.cwd / "conf.json").write_text('{"name": "x", "limits": {"low": 1, "high": 7}}')
    (cli.cwd / "names.txt").write_text("ada bob eve")
    argv = ["--", sys.executable, "-c", READER]
    assert cli.run("record", "--io", "-o", "bad.tape.jsonl.gz", *argv).returncode == 9
    done = cli.run("minimize", "bad.tape.jsonl.gz", "-o", "small.tape.jsonl.gz")
    assert done.returncode == 0, done.stderr
    assert "it needs 2 of 4 values" in done.stdout
    assert "  file conf.json  $.limits.high  7\n  file names.txt  body  " in done.stdout
    assert done.stdout.endswith("tapeproxy replay small.tape.jsonl.gz --io tape\n")
    again = cli.run("replay", "small.tape.jsonl.gz", "--io", "tape", "--report", "r.json")
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (again.returncode, report["violations"]) == (9, [])
    assert cli.run("verify", "small.tape.jsonl.gz").returncode == 0


# Tools whose arguments come from what other tools gave, and a conclusion.
TOOLS = """
from tapeproxy.hints import final_state, tool

@tool
def prices(page):
    return {"items": [{"name": f"item {page}.{n}", "price": -9000 if (page, n) == (2, 1) else n + 1} for n in range(3)]}

@tool
def describe(name):
    return f"about {name}"

total, said = 0, []
for page in range(4):
    for item in prices(page)["items"]:
        total += item["price"]
        said.append(describe(item["name"]))
final_state({"total": total, "said": said})
if total < 0:
    raise ValueError("a negative total")
"""


def test_of_what_tools_gave_one_price_matters(cli: Cli) -> None:
    argv = ["--", sys.executable, "-c", TOOLS]
    assert cli.run("record", "-o", "bad.tape.jsonl.gz", *argv).returncode == 1
    done = cli.run("minimize", "bad.tape.jsonl.gz", "-o", "small.tape.jsonl.gz", "--json", *argv)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(one["name"], one["path"], one["value"]) for one in found["kept"]] == [
        ("tool prices", "$.items[1].price", -9000)
    ]
    assert (found["values"], found["differences"]) == (36, [])
    assert cli.run("verify", "small.tape.jsonl.gz").returncode == 0
    assert cli.run("replay", "small.tape.jsonl.gz").returncode == 1
    small = load(cli.cwd / "small.tape.jsonl.gz")[0]
    finals = [json.loads(value.content or b"") for _, value in small.values if value.what == "final"]
    assert [one["total"] for one in finals] == [-9000]


# Two workers on threads, queues between, and clock reads that depend on what was heard.
TEAM = """
import concurrent.futures, json, queue, sys, time, urllib.request
READS = int(sys.argv[1])

def ask(query):
    query = query[:20].replace(" ", "+")
    with urllib.request.urlopen("https://search.example.com/search?q=" + query, timeout=20) as answer:
        return json.load(answer)["results"]

plan = ask("aurora tides")
found = queue.Queue()

def work(n):
    heard = ask(plan[n]["title"])
    if not any(one["snippet"] for one in heard):
        [time.time() for _ in range(READS)]
    found.put(ask(plan[n]["slug"]))

with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(work, (0, 1)))
ask(" ".join(one["title"] for _ in range(2) for one in found.get()))
if plan[0]["slug"] == "aurora":
    raise ValueError("found something")
"""


def test_a_team_s_small_tape_is_replayed_and_differences_are_told(cli: Cli, home: Path) -> None:
    argv = ["--", sys.executable, "-c", TEAM, "5"]
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        done = cli.run("record", "-o", "bad.tape.jsonl.gz", *maps(provider.url), *argv)
    assert done.returncode == 1, done.stderr
    words = ["-o", "small.tape.jsonl.gz", "--max-probes", "7", "--json"]
    found = json.loads(cli.run("minimize", "bad.tape.jsonl.gz", *words, *argv).stdout)
    assert 1 <= len(found["kept"]) < 8 < found["values"]
    assert found["exchanges"] == 6
    replayed = cli.run("replay", "small.tape.jsonl.gz", "--max-violations", "1")
    # Whom they met, where they asked and in which order is as it was: only those reads are too many.
    assert found["differences"]
    assert all("clock" in text for text in found["differences"])
    assert replayed.returncode == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-o", "small.tape.jsonl.gz", "--check", "true", "--", sys.executable, "-c", LIGHT],
            "does not fail, so there is nothing to minimize",
        ),
        (["-o", "small.tape.jsonl.gz", "--", sys.executable, "-c", "pass"], "the agent exits with 0"),
        ([], "there is no tape to write"),
    ],
)
def test_nothing_to_minimize(words: list[str], said: str, cli: Cli, tape: Path) -> None:
    done = cli.run("minimize", str(tape), *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (cli.cwd / "small.tape.jsonl.gz").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_stopped_it_writes_the_best_so_far(cli: Cli, tape: Path) -> None:
    # The third probe waits for its end.
    check = 'n=$(cat n); echo "$n"x > n; [ "$n" = xx ] && { touch there; exec sleep 60; }; test $TAPEPROXY_EXIT != 9'
    process = cli.start("minimize", str(tape), "-o", "small.tape.jsonl.gz", "--check", check, *light())
    try:
        deadline = time.monotonic() + 60
        while not (cli.cwd / "there").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert "the search ended early: it was stopped" in stdout
    assert cli.run("replay", "small.tape.jsonl.gz").returncode == 9
