"""`replay --explain`: a request that differs, and the line of the agent's code that its difference comes from."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agentruns import write_tape
from clirun import Cli, maps
from shimruns import interpreter

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import read_entries
from tapeproxy.tapes.records import Head, Seal
from tapeproxy.testing import FakeProvider

HEAD = """
import datetime, json, logging, os, random, secrets, ssl, sys, time, urllib.request, uuid
def ask(prompt):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}]}).encode()
    request = urllib.request.Request("https://api.openai.com/v1/chat/completions", body,
                                     {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as error:
        error.close()
"""
ASK = len(HEAD.splitlines())


@pytest.fixture
def told(cli: Cli, home: Path) -> "Told":
    return Told(cli, home)


class Told:
    """Records agents, replays them explained, and reads the report."""

    def __init__(self, cli: Cli, home: Path) -> None:
        self.cli = cli
        self.home = home

    def record(self, python: str, text: str, *options: str, env: dict[str, str] | None = None) -> None:
        """Record an agent of these lines, which has `ask`."""
        self.write(text)
        tls = CertificateAuthority.open(self.home).server_context("127.0.0.1")
        with FakeProvider(tls=tls) as provider:
            words = ["record", *options, "-o", "t.jsonl.gz", *maps(provider.url), "--", python, "agent.py"]
            done = self.cli.run(*words, keys=True, env=env)
        assert done.returncode == 0, done.stderr

    def write(self, text: str) -> None:
        """Write the agent anew."""
        (self.cli.cwd / "agent.py").write_text(HEAD + text)

    def explain(self, *options: str, code: int = 3, env: dict[str, str] | None = None) -> tuple[list[Any], str]:
        """Replay; returns what the report has on provenance and what was printed."""
        done = self.cli.run("replay", "--explain", "--report", "r.json", *options, "t.jsonl.gz", env=env)
        assert done.returncode == code, done.stderr
        return json.loads((self.cli.cwd / "r.json").read_text())["provenance"], done.stderr


def python_of(version: str) -> str:
    path = interpreter(version)
    if path is None:
        pytest.skip(f"no CPython {version} here")
    return str(path)


EVERYTHING = """
def prompt():
    now = int(time.time())
    ask("epoch %s" % now)
    moment = datetime.datetime.now(datetime.timezone.utc).isoformat()
    ask("It is %s." % moment)
    ask("run " + str(uuid.uuid4()))
    ask("token " + secrets.token_hex(32))
    ask("number %d please" % random.randint(10**6, 10**9))
    ask("process %d" % os.getpid())
prompt()
"""
LINES = {
    "time.time": 3,
    "datetime.datetime.now": 5,
    "uuid.uuid4": 7,
    "secrets.token_hex": 8,
    "random.randint": 9,
    "os.getpid": 10,
}


def check(found: list[Any], printed: str, lines: dict[str, int]) -> None:
    named = {}
    for one in found:
        assert one["where"] == "body $.messages[0].content"
        (source,) = one["sources"]
        assert source["how"] == "value"
        named[source["site"]["what"]] = source["site"]["where"][0].rpartition("/")[2]
    assert named == {what: f"agent.py:{ASK + line} in prompt" for what, line in lines.items()}, printed
    for what, place in named.items():
        assert f"contains the value of {what}()" in printed
        assert f"read at {place}" in printed  # relative to where we are


@pytest.mark.parametrize("version", ["3.9", "3.12"])
def test_each_kind_of_read_is_named_with_its_line(version: str, told: Told) -> None:
    told.record(python_of(version), EVERYTHING, "--no-shim")
    second = int(time.time())
    while int(time.time()) == second:  # else what the agent asks first may be what is on the tape
        time.sleep(0.01)
    found, printed = told.explain()
    check(found, printed, LINES)
    assert {one["hint"][:39] for one in found} == {"", "the tape was recorded without the shim,"}


def test_a_tape_with_another_seed_shows_who_drew_from_it(told: Told) -> None:
    told.record(sys.executable, EVERYTHING)
    path = told.cli.cwd / "t.jsonl.gz"
    head, *records = [entry.record for entry in read_entries(path, [])]
    assert isinstance(head, Head)
    records = [record for record in records if not isinstance(record, Seal)]
    write_tape(path, records, replace(head, seed="ab" * 32))
    found, printed = told.explain()
    check(found, printed, {what: line for what, line in LINES.items() if not what.startswith(("time", "datetime"))})
    assert "the agent came to it another way" in printed


def test_what_no_read_gave_is_said_to_come_from_elsewhere(told: Told) -> None:
    text = "ask('see %r' % object())\nask('mode ' + open('mode').read())\n"
    (told.cli.cwd / "mode").write_text("fast")
    told.record(sys.executable, text)
    (told.cli.cwd / "mode").write_text("slow")
    found, _ = told.explain()
    assert [one["sources"] for one in found] == [[]] * len(found)
    assert "a memory address" in found[0]["hint"]
    assert "the same in each replay: it comes from the code, its arguments or a file" in found[-1]["hint"]


MORE = """
def poll(times):
    for _ in range(times):
        time.monotonic()
poll({0})
ask("first")
poll({1})
time.time()
ask("second")
"""


def test_another_position_names_the_places_that_read_the_clock(told: Told) -> None:
    told.record(sys.executable, MORE.format(2, 5))
    told.write(MORE.format(2, 9))
    found, printed = told.explain(code=4)
    assert {one["where"] for one in found} == {"clock reads before it", "clock reads of the lane"}
    for one in found:
        assert ("time.monotonic", 9) in [(site["site"]["what"], site["reads"]) for site in one["sites"]]
    assert "time.monotonic(), 9 reads" in printed
    assert "since its request before, these places did" in printed


def test_a_lane_that_reads_on_past_its_end_names_who_did(told: Told) -> None:
    text = "ask('first')\ndef wait():\n    time.time()\nfor _ in range({}):\n    wait()\n"
    told.record(sys.executable, text.format(2))
    told.write(text.format(7))
    found, printed = told.explain(code=4)
    (one,) = found
    (count,) = one["sites"]
    assert (one["request"], one["where"], count["reads"]) == ("lane m", "clock reads of the lane", 7)
    assert f"agent.py:{ASK + 3} in wait: time.time(), 7 reads" in printed


ONCE = """
print("agent speaks")
if os.path.exists("marker"):
    os.remove("marker")
    ask("only once")
elif os.path.exists("second"):
    os.read(os.pipe()[0], 1)
else:
    ask("always")
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_a_difference_that_does_not_come_again_is_said_to_be_none_of_the_tape_s(told: Told, hangs: bool) -> None:
    told.record(sys.executable, ONCE)
    (told.cli.cwd / "marker").touch()
    if hangs:
        (told.cli.cwd / "second").touch()
    found, printed = told.explain(*(["--timeout", "3"] if hangs else []))
    assert [one["sources"] for one in found] == [[]]
    assert ("took too long" if hangs else "did not come again") in found[0]["hint"]
    assert found[0]["hint"] in printed


def test_the_second_run_is_silent_and_only_made_when_asked_for(told: Told) -> None:
    told.record(sys.executable, "print('agent speaks')\nopen('runs', 'a').write('x')\nask(str(os.getpid()))\n")
    runs = told.cli.cwd / "runs"
    runs.unlink()
    plain = told.cli.run("replay", "t.jsonl.gz")
    assert (plain.returncode, plain.stdout, runs.read_text()) == (3, "agent speaks\n", "x")
    assert "tapeproxy replay --explain t.jsonl.gz shows which line it came from" in plain.stderr
    explained = told.cli.run("replay", "--explain", "t.jsonl.gz")
    assert (explained.returncode, explained.stdout, runs.read_text()) == (3, "agent speaks\n", "xxx")
    assert "os.getpid(), which no tape decides" in explained.stderr
    assert "--explain" not in explained.stderr


def test_values_in_a_url_are_found_though_the_request_is_another_one_each_time(told: Told) -> None:
    text = """
url = "https://search.example.com/%s/find?at=%d" % (uuid.uuid4().hex, time.time_ns())
try:
    urllib.request.urlopen(url, timeout=30).read()
except urllib.error.HTTPError as error:
    error.close()
"""
    told.record(sys.executable, text, "--no-shim")
    found, _ = told.explain()
    sources = {one["where"]: [(source["how"], source["site"]["what"]) for source in one["sources"]] for one in found}
    assert sources == {"path": [("value", "uuid.uuid4")], "query at": [("value", "time.time_ns")]}


def test_an_answer_that_was_used_up_has_no_difference_to_explain(told: Told) -> None:
    told.record(sys.executable, "ask('same')\n")
    told.write("ask('same')\nask('same')\n")
    found, printed = told.explain()
    assert found == []
    assert "nothing here differs from a taped request in its values" in printed


def test_nothing_is_run_again_where_nothing_differs(told: Told) -> None:
    told.record(sys.executable, "open('runs', 'a').write('x')\nask(str(time.time()))\n")
    assert told.explain(code=0)[0] == []
    assert (told.cli.cwd / "runs").read_text() == "xx"


def test_without_the_shim_there_is_nothing_to_ask(told: Told) -> None:
    done = told.cli.run("replay", "--explain", "--no-shim", "t.jsonl.gz")
    assert done.returncode == 2
    assert "--explain needs the shim" in done.stderr


def test_a_value_from_the_main_lane_in_a_thread_s_request(told: Told) -> None:
    text = """
import threading
def job(key):
    ask("key " + key)
for _ in range(2):
    key = uuid.uuid4().hex[:10]
    thread = threading.Thread(target=job, args=(key,))
    thread.start(); thread.join()
"""
    told.record(sys.executable, text, "--no-shim")
    found, printed = told.explain()
    sources = [one["sources"][0] for one in found]
    assert [(source["how"], source["lane"], len(source["text"])) for source in sources] == [("part", "m", 10)] * 2
    assert sources[0]["text"] != sources[1]["text"]
    assert f"agent.py:{ASK + 6} in <module>" in printed


def test_what_stands_beyond_an_excerpt_is_found_and_a_longer_history_does_not_hide_it(told: Told) -> None:
    text = """
def ask_all(*prompts):
    body = json.dumps({"messages": [{"role": "user", "content": prompt} for prompt in prompts]}).encode()
    request = urllib.request.Request("https://api.openai.com/v1/chat/completions", body,
                                     {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as error:
        error.close()
long = "session %s; " % uuid.uuid4() + "be brief; " * 300 + "ticket %d" % random.randint(10**8, 10**9)
ask_all(*EXTRA, "hello", long)
"""
    told.record(sys.executable, text.replace("EXTRA", "[]"), "--no-shim")
    for extra in ("[]", "['new']"):
        told.write(text.replace("EXTRA", extra))
        found, printed = told.explain()
        named = {one["where"]: [source["site"]["what"] for source in one["sources"]] for one in found}
        assert ["uuid.uuid4", "random.randint"] in named.values(), printed
