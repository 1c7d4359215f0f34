"""Updates, whole: a real mitmproxy, a changed agent, and the fake provider, which counts what reaches it."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from clirun import KEYS, Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import is_locked, load
from tapeproxy.proxy.unlocking import Secret, ask_with
from tapeproxy.testing import FakeProvider

TEAM = Path(__file__).with_name("programs") / "team.py"
TAPE = "t.tape.jsonl.gz"
AGENT = """
import json, os, sys, time, urllib.request
def ask(text):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    url = "https://api.openai.com/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"][:40])
    except OSError as error:
        print(error)
ask("first")
ask(f"SECOND at {time.time()}")
ask("third")
"""


@dataclass(slots=True)
class Bench:
    """The agent, its tape, and the provider, which has forgotten the recording."""

    cli: Cli
    provider: FakeProvider
    program: str = AGENT
    taped: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.taped = self.path.read_bytes()
        self.change("SECOND", "SECOND")

    @property
    def path(self) -> Path:
        return self.cli.cwd / TAPE

    @property
    def new(self) -> Path:
        return self.cli.cwd / f"{TAPE}.new"

    def change(self, old: str, new: str) -> None:
        (self.cli.cwd / "agent.py").write_text(self.program.replace(old, new))

    def update(self, *options: str, keys: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        return self.cli.run("update", TAPE, *options, *maps(self.provider.url), keys=keys, env=env)

    def asked(self) -> list[str]:
        """What was said in requests that have reached the provider."""
        found = [json.loads(request.body)["messages"][-1]["content"] for request in self.provider.requests]
        self.provider.requests.clear()
        return found

    def files(self) -> list[str]:
        return sorted(path.name for path in self.cli.cwd.iterdir())

    def replay(self, tape: str = TAPE) -> str:
        """Replay it offline, every event of it; returns what the agent printed."""
        done = self.cli.run("replay", tape)
        assert done.returncode == 0, done.stderr
        assert " 0 violations" in done.stderr
        assert "unused" not in done.stderr
        return done.stdout


def recorded(home: Path, folder: Path, program: str) -> Path:
    """A tape of this program."""
    (folder / "agent.py").write_text(program)
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"gap_ms": [1, 3]}, tls=tls) as provider:
        words = ["record", "-o", TAPE, *maps(provider.url), "--", sys.executable, "agent.py"]
        done = Cli(folder, home).run(*words, keys=True)
    assert done.returncode == 0, done.stderr
    return folder / TAPE


@pytest.fixture(scope="module")
def taped(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(home, tmp_path_factory.mktemp("plain"), AGENT)


@pytest.fixture
def bench(cli: Cli, provider: FakeProvider, taped: Path) -> Bench:
    shutil.copy(taped, cli.cwd)
    return Bench(cli, provider)


def test_only_what_changed_is_asked_anew_shown_and_written_when_it_is_accepted(bench: Bench, taped: Path) -> None:
    bench.change("SECOND", "changed")
    done = bench.update()
    assert done.returncode == 1, done.stderr
    assert [text.partition(" at ")[0] for text in bench.asked()] == ["changed"]
    assert "2 reused, 1 live, 0 dropped" in done.stderr
    assert "changed message 0 (user): [-SECOND-]{+changed+} at " in done.stderr
    assert "not written: there is no terminal to ask on" in done.stderr
    assert bench.path.read_bytes() == bench.taped

    accepted = bench.cli.run("update", "--accept", TAPE)
    assert accepted.returncode == 0, accepted.stderr
    assert "[-SECOND-]{+changed+}" in accepted.stderr
    assert not bench.new.exists()
    tape, was = load(bench.path)[0], load(taped)
    assert [one.request.source for one in tape.exchanges] == ["reused", "live", "reused"]
    assert (tape.head.branch or {})["update"] is True
    parent = tape.head.parent or {}
    assert (parent["name"], parent["last"]) == (TAPE, was[1].hash)
    assert tape.head.seed == was[0].head.seed
    assert bench.cli.run("verify", TAPE).returncode == 0
    bench.provider.stop()
    assert bench.replay() == done.stdout

    before = bench.path.read_bytes()
    again = bench.update(keys=False)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    assert "nothing changed" in again.stderr
    assert bench.path.read_bytes() == before
    assert bench.files() == ["agent.py", TAPE]


def test_all_that_may_know_of_the_change_is_asked_anew_where_that_is_wanted(bench: Bench) -> None:
    bench.change("SECOND", "changed")
    done = bench.update("--rerun", "future", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert [text.partition(" at ")[0] for text in bench.asked()] == ["changed", "third"]
    told = json.loads(done.stdout[done.stdout.index("\n{") :])
    assert (told["reused"], told["live"], told["dropped"], told["written"]) == (1, 2, [], True)
    assert told["diff"]["relation"] == "B is an update of A"
    assert (bench.cli.cwd / f"{TAPE}.bak").read_bytes() == bench.taped
    bench.provider.stop()
    assert bench.replay() + "{" == done.stdout[: done.stdout.index("\n{") + 2]


def test_without_a_key_nothing_goes_out_and_nothing_is_written(bench: Bench) -> None:
    bench.change("SECOND", "changed")
    dry = bench.update("--dry-run", keys=False)
    assert dry.returncode == 1
    assert "2 on the tape, 1 request not" in dry.stderr
    assert "[-SECOND-]{+changed+}" in dry.stderr
    done = bench.update("--yes", keys=False)
    assert done.returncode == 3
    assert "with a key that is not set here: ANTHROPIC_API_KEY, OPENAI_API_KEY" in done.stderr
    assert bench.asked() == []
    assert bench.path.read_bytes() == bench.taped
    assert bench.files() == ["agent.py", TAPE]


def test_by_a_rule_what_differs_is_the_same_and_is_on_the_new_tape(bench: Bench) -> None:
    (bench.cli.cwd / "agent.py").write_text(AGENT.replace("SECOND", "changed").replace('ask("third")', ""))
    done = bench.update("--yes", "--ignore-json", "$.messages[*].content")
    assert done.returncode == 0, done.stderr
    assert bench.asked() == []
    assert load(bench.path)[0].head.rules["user"] == ["ignore-json $.messages[*].content"]
    assert bench.replay() == done.stdout


def test_what_is_no_longer_asked_is_dropped_and_a_failing_agent_needs_a_yes(bench: Bench) -> None:
    bench.change('ask("third")', "sys.exit(7)")
    done = bench.update()
    assert done.returncode == 7
    assert "2 reused, 0 live, 1 dropped (3)" in done.stderr
    assert "the agent exited 7, which it did not on the tape" in done.stderr
    assert bench.path.read_bytes() == bench.taped
    waiting = bench.new.read_bytes()
    assert bench.update("--dry-run").returncode == 1
    assert bench.new.read_bytes() == waiting
    done = bench.update("--yes", "-o", "less.gz")
    assert (done.returncode, bench.asked()) == (7, [])
    assert bench.path.read_bytes() == bench.taped
    assert len(load(bench.cli.cwd / "less.gz")[0].exchanges) == 2


def test_a_secret_in_a_new_request_is_on_no_tape(bench: Bench) -> None:
    secret = "hunter2-" + KEYS["OPENAI_API_KEY"][::-1]
    bench.change("SECOND", f"api_key={secret} and {{os.environ['OPENAI_API_KEY']}}")
    done = bench.update("--yes", MY_SECRET=secret)
    assert done.returncode == 0, done.stderr
    assert secret in bench.asked()[0]
    shown = subprocess.run(["zcat", str(bench.path)], capture_output=True, text=True, check=True).stdout
    for hidden in (secret, KEYS["OPENAI_API_KEY"]):
        assert hidden not in shown
        assert hidden not in done.stderr
    bench.provider.stop()
    assert bench.cli.run("replay", TAPE, env={"MY_SECRET": secret}).returncode == 0


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("\n", False)])
def test_on_a_terminal_it_asks(bench: Bench, answer: str, written: bool) -> None:
    bench.change("SECOND", "changed")
    signature = bench.cli.cwd / f"{TAPE}.sig"
    signature.write_text("of the old tape")
    mine, theirs = pty.openpty()
    words = ["update", TAPE, "-q", *maps(bench.provider.url)]
    running = bench.cli.start(*words, keys=True, stdin=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        assert select.select([mine], [], [], 60)[0]
        said += os.read(mine, 4096)
    assert b"exchange 2, changed" in said
    os.write(mine, answer.encode())
    assert running.wait(60) == (0 if written else 1)
    running.communicate()
    assert (bench.path.read_bytes() != bench.taped) is written
    assert not bench.new.exists()
    assert signature.exists()
    assert (b"sign the new one" in os.read(mine, 4096)) is written


def test_an_update_that_is_killed_leaves_the_tape_and_the_next_one_begins_anew(bench: Bench, home: Path) -> None:
    bench.change("SECOND", "changed")
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"delay_ms": 60_000}, tls=tls) as slow:
        running = bench.cli.start("update", TAPE, "--yes", *maps(slow.url), keys=True)
        while not slow.requests:
            assert running.poll() is None
            time.sleep(0.01)
        running.kill()
        running.communicate()
    assert bench.path.read_bytes() == bench.taped
    assert bench.new.exists()
    refused = bench.cli.run("update", "--accept", TAPE)
    assert (refused.returncode, "the new tape was interrupted" in refused.stderr) == (2, True)
    assert bench.update("--yes").returncode == 0
    assert bench.files() == ["agent.py", TAPE, f"{TAPE}.bak"]


def test_an_encrypted_tape_stays_encrypted(bench: Bench) -> None:
    words = "correct horse battery staple"
    env: dict[str, str] = {"TAPEPROXY_PASSPHRASE": words}
    done = bench.cli.run("encrypt", TAPE, "-o", "locked.gz", env=env)
    assert done.returncode == 0, done.stderr
    shutil.move(bench.cli.cwd / "locked.gz", bench.path)
    bench.change("SECOND", "changed")
    done = bench.update("--yes", TAPEPROXY_PASSPHRASE=words)
    assert done.returncode == 0, done.stderr
    assert is_locked(bench.path)
    assert len(load(bench.path, ask_with(Secret("passphrase", words.encode())))[0].exchanges) == 3
    assert bench.cli.run("replay", TAPE, env=env).stdout == done.stdout


def test_threads_that_know_nothing_of_the_change_stay_on_the_tape(cli: Cli, provider: FakeProvider, home: Path) -> None:
    recorded(home, cli.cwd, TEAM.read_text())
    bench = Bench(cli, provider, TEAM.read_text())
    bench.change('f"{name}{', "f\"{'NEW ' * (name == 'worker_a')}{name}{")
    done = bench.update("--yes")
    assert done.returncode == 0, done.stderr
    assert "4 reused, 2 live, 0 dropped" in done.stderr
    first, second = bench.asked()
    assert first.startswith("NEW worker_a: tides")
    # Who has joined the changed thread has real time, and says so.
    assert second.startswith("synthesize")
    bench.provider.stop()
    assert bench.replay() == done.stdout
    lanes = {one.request.lane: one.request.source for one in load(bench.path)[0].exchanges if one.request.n == 1}
    assert lanes == {"m": "live", "m/t0": "live", "m/t1": "reused"}
