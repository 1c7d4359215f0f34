"""The tape of what a replay did: whole, and as the one that was replayed where all went well."""

import sys
from pathlib import Path

import agentruns
import pytest
from clirun import Cli

from tapeproxy.cli.verify import examine
from tapeproxy.proxy.owntape import OwnTape
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.unlocking import ask_nobody
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.records import Exit
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Drift, Violation

GONE = "http://api.test/gone"


@pytest.fixture
def taped(tmp_path: Path) -> Tape:
    """Of /one, cut short, and /two, whose connection was refused."""
    records = agentruns.exchange(1, "http://api.test/one", chunks=[b"1", b"2"], how="upstream-cut", error="cut")
    records += agentruns.exchange(len(records) + 1, "http://api.test/two", status=None, how="connect-error")
    return load(agentruns.write_tape(tmp_path / "a.tape.jsonl.gz", records))[0]


def ask(url: str) -> Ask:
    return Ask(b"GET", url.encode(), ((b"X-Now", b"1"),), b"body")


def test_what_was_asked_and_found(taped: Tape, tmp_path: Path) -> None:
    ticks = iter(range(0, 1000, 10))
    own = OwnTape(lambda: next(ticks))
    assert own.empty
    own.witness(Step(1, LaneTag("m/t0", 1, 5), ask("http://api.test/one")))
    own.notice(Violation("interrupted", "GET http://api.test/one", "it was interrupted"))
    own.notice(Drift("GET http://api.test/one", "came another way"))
    own.witness(Step(None, None, ask(GONE)))
    own.notice(Violation("egress", "connect elsewhere", "wanted to connect"))
    own.witness(Step(None, None, ask(GONE)))
    own.notice(Violation("miss", f"GET {GONE}", "this request is not on the tape"))
    own.witness(Step(2, None, ask("http://api.test/two")))
    path = tmp_path / "new" / "own.tape.jsonl.gz"
    own.write(path, taped, Redactor(b"k" * 32), ["agent", "sk-test-0123456789abcdefghij"], Outcome(-15, 7, "timeout"))
    assert examine(path, ask_nobody).good
    tape, _ = load(path)
    told = [
        (
            one.request.t,
            one.request.source,
            one.request.lane,
            one.response and one.response.status,
            one.response_body[:7],
        )
        for one in tape.exchanges
    ]
    assert told == [
        (10, "reused", "m/t0", 200, b"12"),
        (40, "refused", None, None, b""),
        (60, "refused", None, 470, b'{"error'),
        (80, "reused", None, None, b""),
    ]
    assert [one.end and one.end.how for one in tape.exchanges] == ["upstream-cut", None, "complete", "connect-error"]
    assert tape.exchanges[0].request.headers == ((b"X-Now", b"1"),) and tape.exchanges[0].request.reads == 5
    assert [note.what for note in tape.notes] == ["replay-violation", "replay-drift", *["replay-violation"] * 2]
    assert tape.exit == Exit(t=90, code=None, signal="SIGTERM", duration=7)
    assert tape.seal is not None and tape.seal.outcome == "timeout"
    assert taped.seal is not None and tape.head.extra["replay_of"]["trace"] == taped.seal.trace
    assert "sk-test" not in " ".join(tape.head.argv)


AGENT = "import sys, urllib.request as u\nfor p in sys.argv[1:]: u.urlopen('http://api.test' + p).read()\n"


def test_on_the_command_line(tmp_path: Path) -> None:
    cli = Cli(tmp_path, tmp_path / "home")
    (tmp_path / "agent.py").write_text(AGENT)
    records = agentruns.exchange(1, "http://api.test/one", chunks=[b"1"])
    agentruns.write_tape(tmp_path / "a.tape.jsonl.gz", [*records, Exit(t=1, code=0)])
    agent = ["--", sys.executable, "agent.py", "/one"]
    done = cli.run("replay", "-q", "a.tape.jsonl.gz", "--own-tape", "own.tape.jsonl.gz", *agent)
    assert done.returncode == 0, done.stderr
    found = [examine(tmp_path / name, ask_nobody) for name in ("a.tape.jsonl.gz", "own.tape.jsonl.gz")]
    assert found[0].trace == found[1].trace and found[1].good and found[1].outcome == "exit 0"
    assert "\nthe same" in "\n" + cli.run("diff", "a.tape.jsonl.gz", "own.tape.jsonl.gz").stdout
    done = cli.run("replay", "-q", "a.tape.jsonl.gz", "--own-tape", "no/dir", *agent, "/two")
    assert done.returncode == 3, done.stderr  # into a folder that is made
    done = cli.run("replay", "-q", "a.tape.jsonl.gz", "--own-tape", "b", "--inject", "reset", *agent)
    assert done.returncode == 2 and "--own-tape can't hold what --inject gives" in done.stderr
    cli.run("encrypt", "a.tape.jsonl.gz", "--passphrase-env", "WORD", env={"WORD": "correct horse battery"})
    done = cli.run("replay", "-q", "a.tape.jsonl.gz.enc", "--own-tape", "b", *agent)
    assert done.returncode == 2 and "the tape is encrypted, and the replay's own would not be" in done.stderr
    assert not (tmp_path / "b").exists()
