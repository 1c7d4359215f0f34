"""Several replays of one tape with real children: what they share, what they don't, and what is kept of them."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agentruns
import pytest

from tapeproxy.proxy.commands import CommandNotFoundError
from tapeproxy.proxy.comparing import Run
from tapeproxy.proxy.guard import Guard, GuardPlan, HostPort
from tapeproxy.proxy.repeating import Begun, Repeated, repeat
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replaying import Wire
from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.violations import Violation

ASK = """
import os, sys, urllib.request, urllib.error

def ask(path="/now?city=Paris", **headers):
    request = urllib.request.Request("http://weather.test:8080" + path, headers=headers)
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code

def once_before(name):
    # Whether an earlier run was here.
    if os.path.exists(name):
        return True
    open(name, "w").close()
    return False

"""


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", agentruns.sample())


def settings(tape: Path, program: str, **options: Any) -> ReplaySettings:
    environment: Mapping[str, str] = {"PATH": os.environ["PATH"]}
    return ReplaySettings(tape=tape, environment=environment, argv=(sys.executable, "-c", ASK + program), **options)


def repeated(tape: Path, program: str, times: int = 2, **options: Any) -> Repeated:
    return asyncio.run(repeat(settings(tape, program, **options), times))


def test_replays_that_are_the_same(tape: Path) -> None:
    told: list[Begun | Run] = []
    given = settings(tape, "print(ask(), ask('/missing'), sys.stdin.read(), os.environ['HTTP_PROXY'])")
    done = asyncio.run(repeat(given, 3, told.append))
    assert (done.identical, done.difference, done.stopped) == (3, None, False)
    assert [type(event) for event in told] == [Begun, Run] * 3
    assert told[1::2] == done.runs
    assert [run.replayed.served for run in done.runs] == [2, 2, 2]
    assert done.runs[0].stdout.text.startswith(b"200 404  http://127.0.0.1:")
    assert [run.course is done.runs[0].course for run in done.runs] == [True] * 3, "kept once"
    assert 0 < done.mean_ns < 60e9
    assert all(run.took_ns > run.replayed.took_ns for run in done.runs)


def test_the_trace_is_the_tape_s_when_everything_was_asked_for(tape: Path) -> None:
    agentruns.write_tape(tape, agentruns.exchange(1, "http://weather.test:8080/now?city=Paris", chunks=[b"dry"]))
    done = repeated(tape, "ask()", times=1)
    assert done.as_sealed
    assert done.runs[0].trace == done.runs[0].replayed.trace()
    assert repeated(tape, "", times=1).as_sealed is False
    agentruns.write_tape(tape, agentruns.sample(), sealed=False)
    assert repeated(tape, "", times=1).as_sealed is None


CASES = {
    "exit": ("sys.exit(once_before('x') * 3)", "exit"),
    "signal": ("ask()\nif once_before('x'): os.kill(os.getpid(), 9)", "exit"),
    "stdout": ("print(ask(), os.getpid())", "stdout"),
    "stderr": ("sys.stderr.write(str(once_before('x')))", "stderr"),
    "a request less": ("if not once_before('x'): ask()", "request"),
    "a header": ("ask(trace=str(once_before('x')))", "request"),
    "a violation": ("if once_before('x'): ask('/other')", "violation"),
    "used up": ("ask()\nif once_before('x'): ask()", "violation"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_that_is_another(tape: Path, case: str) -> None:
    program, what = CASES[case]
    done = repeated(tape, program)
    assert done.difference is not None
    assert (done.difference.number, done.difference.what) == (2, what)
    assert done.identical == 1


def test_every_replay_has_the_whole_tape(tape: Path) -> None:
    """Answers, violations and refusals of one are not the next one's."""
    done = repeated(tape, "ask(); ask('/other')", times=3)
    assert [run.replayed.served for run in done.runs] == [1, 1, 1]
    assert [[v.kind for v in run.replayed.violations] for run in done.runs] == [["miss"]] * 3
    assert isinstance(done.runs[2].fault(), Violation)
    assert done.identical == 0


def test_violations_are_counted_replay_by_replay(tape: Path) -> None:
    done = repeated(tape, "for _ in range(2): ask('/other')", times=2, max_violations=3)
    assert [run.replayed.outcome and run.replayed.outcome.stopped_by for run in done.runs] == [None, None]
    endless = repeated(tape, "while True: ask('/other')", times=1, max_violations=3)
    assert [run.replayed.outcome and run.replayed.outcome.stopped_by for run in endless.runs] == ["violations"]


@pytest.mark.skipif(sys.platform != "linux", reason="which processes belong to a run can only be seen on Linux")
def test_what_a_replay_leaves_behind_is_gone_before_the_next(tape: Path) -> None:
    program = """
import subprocess
if once_before("x"):
    place = f"/proc/{open('pid').read()}/cmdline"
    print(open(place).read() if os.path.exists(place) else "")  # of a zombie it is empty
else:
    print()
open("pid", "w").write(str(subprocess.Popen(["sleep", "600"]).pid))
"""
    done = repeated(tape, program, times=2)
    assert done.identical == 2
    assert [run.replayed.notes for run in done.runs] == [["processes that outlived the agent were ended: 1"]] * 2


def test_a_replay_that_takes_too_long(tape: Path) -> None:
    done = repeated(tape, "import threading; threading.Event().wait()", times=1, timeout=0.5)
    assert done.difference is not None
    assert (done.difference.what, done.identical) == ("timeout", 0)


def test_ctrl_c_ends_it_after_the_replays_that_are_over(tape: Path) -> None:
    # Not signal.pause(): the signal may come just before it.
    program = (
        "import time\nask()\nif once_before('x'): os.kill(os.getppid(), 2); [time.sleep(0.05) for _ in range(1200)]"
    )
    done = repeated(tape, program, times=5)
    assert (len(done.runs), done.stopped, done.identical) == (1, True, 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_output_of_which_there_is_much_is_compared_and_not_kept(tape: Path) -> None:
    done = repeated(tape, "sys.stdout.write('x' * 3_000_000 + str(os.getpid()))", times=2)
    assert done.difference is not None
    assert done.difference.text == "stdout differs after its first 1048576 bytes, and no more of it is kept"
    assert len(done.runs[1].stdout.text) == 1 << 20


@pytest.mark.parametrize("match", ["lane", "any"])
def test_without_lanes_there_is_no_order(tape: Path, match: str) -> None:
    program = (
        "paths = ['/missing', '/now?city=Paris']\nfor path in paths if once_before('x') else paths[::-1]: ask(path)"
    )
    assert repeated(tape, program, match=match).identical == 2


@pytest.mark.parametrize(
    ("guard", "alone"),
    [
        (GuardPlan(Guard.NAMESPACE), True),
        (GuardPlan(Guard.NAMESPACE, allow=(HostPort("db.example", 5432),)), False),
        (GuardPlan(Guard.AUDIT), False),
        (GuardPlan(Guard.NONE), False),
    ],
)
def test_the_public_roots_are_trusted_where_somebody_can_be_reached(tape: Path, guard: GuardPlan, alone: bool) -> None:
    (run,) = repeated(tape, "print(open(os.environ['SSL_CERT_FILE']).read().count('BEGIN CERT'))", 1, guard=guard).runs
    assert (run.stdout.text == b"1\n") is alone


def test_with_lanes_there_is_one(tape: Path) -> None:
    """And whose it was matters only where lanes do."""
    tags = "{'x-tapeproxy-lane': f'm/t{once_before(\"x\")}#0@0'}"
    done = repeated(tape, f"ask(**{tags})")
    assert done.difference is not None
    assert done.difference.text == "request 1 of lane m/tFalse was made in one of the two only"
    Path("x").unlink()
    assert repeated(tape, f"ask(**{tags})", match="any").identical == 2


def test_a_command_that_is_not_there(tape: Path) -> None:
    given = ReplaySettings(tape=tape, environment={"PATH": "/bin"}, argv=("no-such-command",))
    with pytest.raises(CommandNotFoundError):
        asyncio.run(repeat(given, 2))
    with pytest.raises(UsageError, match="recorded elsewhere"):
        asyncio.run(repeat(ReplaySettings(tape=tape, environment={}), 2))
    tape.write_bytes(b"")
    with pytest.raises(TapeFormatError):
        asyncio.run(repeat(given, 2))


def test_a_wire_keeps_its_port(tape: Path) -> None:
    async def ports() -> set[int]:
        wire = Wire.open(settings(tape, ""))
        found: set[int] = set()
        for _ in range(3):
            session = await wire.begin(lambda _: None)
            found.add(session.port)
            await session.end()
        await wire.stop()
        return found

    assert len(asyncio.run(ports())) == 1
