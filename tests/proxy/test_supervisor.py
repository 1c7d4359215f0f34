"""The supervisor with real children: how they end, what they inherit, which signals reach them."""

import asyncio
import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tapeproxy.proxy.commands import CommandNotFoundError, CommandNotRunnableError
from tapeproxy.proxy.processes import RUN_VARIABLE, RunProcesses
from tapeproxy.proxy.supervisor import Outcome, Stdio, StopSignal, end_leftovers, held_signals, run_child
from tapeproxy.tapes.errors import TapeproxyError

PYTHON = sys.executable
RUN = f"test-{os.getpid()}"  # several suites may run on one machine
ENV = {**os.environ, RUN_VARIABLE: RUN}
FOREVER = "import signal; signal.pause()"


def run(program: str, *arguments: str, **options: Any) -> Outcome:
    return asyncio.run(run_child([PYTHON, "-c", program, *arguments], ENV, **options))


# --- how a child ends ---


@pytest.mark.parametrize(
    ("program", "code", "name", "exit_code"),
    [
        ("", 0, None, 0),
        ("raise SystemExit(7)", 7, None, 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", None, "SIGKILL", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 1)", None, "SIG35", 163),
    ],
)
def test_outcomes(program: str, code: int | None, name: str | None, exit_code: int) -> None:
    outcome = run(program)
    assert (outcome.code, outcome.signal, outcome.exit_code) == (code, name, exit_code)
    assert outcome.stopped_by is None
    assert 0 < outcome.duration_ns < 60e9


@pytest.mark.parametrize(
    ("command", "kind"),
    [("no-such-command", CommandNotFoundError), (str(Path(__file__).parent), CommandNotRunnableError)],
)
def test_a_command_that_cannot_start(command: str, kind: type[TapeproxyError]) -> None:
    with pytest.raises(kind) as caught:
        asyncio.run(run_child([command], ENV))
    assert caught.value.where == command


def test_a_script_runs_with_the_python_on_its_path(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text("import sys; raise SystemExit(len(sys.argv))")
    assert asyncio.run(run_child([str(script), "x"], ENV)).code == 2


def test_a_signal_for_us_is_told_whatever_the_child_makes_of_it() -> None:
    ignoring = "import os, signal; signal.signal(2, signal.SIG_IGN); os.kill(os.getppid(), 2)"
    assert run(ignoring).signalled
    assert not run("").signalled


# --- what it inherits ---


def test_output_and_environment_are_the_childs_own(capfd: pytest.CaptureFixture[str]) -> None:
    run(f"import os, sys; print(os.environ[{RUN_VARIABLE!r}], flush=True); print('err', file=sys.stderr)")
    assert capfd.readouterr() == (f"{RUN}\n", "err\n")


def test_other_descriptors_may_stand_in_for_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("words")
    with contextlib.ExitStack() as stack:
        modes = {"in": "r", "out": "w", "err": "w"}
        files = [stack.enter_context((tmp_path / name).open(mode)).fileno() for name, mode in modes.items()]
        run("import sys; print(sys.stdin.read()); print('err', file=sys.stderr)", stdio=Stdio(*files))
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("words\n", "err\n")
    assert capfd.readouterr() == ("", "")


def test_input_and_further_descriptors_stay_open() -> None:
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    assert run(f"import os; os.write({theirs}, b'here')").code == 0
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        assert pipe.read() == b"here"


# Lists the descriptors that are open, without the one that the listing itself took.
LIST = """
import os
listed = os.listdir("/proc/self/fd")
print([int(name) for name in listed if os.path.exists("/proc/self/fd/" + name)])
"""


def test_nothing_of_ours_leaks_into_the_child(capfd: pytest.CaptureFixture[str]) -> None:
    with Path(__file__).open():
        given = {0, 1, 2, *inheritable()}
        run(LIST)
    assert set(json.loads(capfd.readouterr().out)) <= given


def inheritable() -> Iterator[int]:
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.get_inheritable(int(path.name)):
                yield int(path.name)


# --- ending it early ---


def test_a_timeout_ends_it() -> None:
    outcome = run(FOREVER, timeout=0.05)
    assert (outcome.stopped_by, outcome.signal) == ("timeout", "SIGTERM")


# Has a daemon, out of its process group and re-parented, that ignores SIGTERM. Says when all is set.
DAEMON = """
import os, signal, sys
before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
released, release = os.pipe()
if not os.fork():
    os.close(release)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.read(released, 1)
    os.write(int(sys.argv[1]), b"%d\\n" % os.getpid())
    signal.pause()
os.wait()
signal.signal(signal.SIGTERM, HANDLER)
os.close(release)
signal.pause()
"""
STUBBORN = DAEMON.replace("HANDLER", "signal.SIG_IGN")
YIELDING = DAEMON.replace("HANDLER", "before")


@contextlib.contextmanager
def report() -> Iterator[tuple[int, int]]:
    """A pipe whose writing end the child inherits."""
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


async def readable(descriptor: int) -> None:
    """Wait until there is something to read, or until the process has ended."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, event.set)
    try:
        async with asyncio.timeout(20):
            await event.wait()
    finally:
        loop.remove_reader(descriptor)


async def reported_process(ours: int) -> int:
    """A descriptor for the process whose number is reported."""
    await readable(ours)
    return os.pidfd_open(int(os.read(ours, 100)))


@pytest.mark.parametrize(("program", "name"), [(STUBBORN, "SIGKILL"), (YIELDING, "SIGTERM")], ids=["child", "daemon"])
def test_a_stop_ends_every_process_of_the_run_the_stubborn_ones_too(program: str, name: str) -> None:
    async def scenario() -> Outcome:
        stop = StopSignal()
        with report() as (ours, theirs):
            argv = [PYTHON, "-c", program, str(theirs)]
            running = asyncio.create_task(run_child(argv, ENV, stop=stop, grace=0.05, timeout=60))
            daemon = await reported_process(ours)
            stop.request("violations")
            stop.request("user")
            async with asyncio.timeout(20):
                outcome = await running
            await readable(daemon)
            os.close(daemon)
        return outcome

    outcome = asyncio.run(scenario())
    assert (outcome.stopped_by, outcome.signal) == ("violations", name)


# Ends at once at SIGTERM; its own child then takes its time to clean up, as long as we let it.
TIDY = """
import os, signal, sys
report, answer = map(int, sys.argv[1:])
gone, alive = os.pipe()
def clean_up(number, frame):
    os.read(gone, 1)
    os.write(report, b"cleaning\\n")
    os.read(answer, 1)
    os.write(report, b"clean\\n")
    os._exit(0)
if not os.fork():
    os.close(alive)
    signal.signal(signal.SIGTERM, clean_up)
    os.write(report, b"ready\\n")
    signal.pause()
signal.pause()
"""


def test_the_grace_is_for_every_process_of_the_run() -> None:
    async def scenario() -> list[bytes]:
        seen: list[bytes] = []
        stop = StopSignal()
        with report() as (ours, theirs), report() as (question, answer):
            os.set_inheritable(question, True)
            argv = [PYTHON, "-c", TIDY, str(theirs), str(question)]
            running = asyncio.create_task(run_child(argv, ENV, stop=stop, grace=20))
            for reply in (lambda: stop.request("user"), lambda: os.write(answer, b"!"), lambda: None):
                await readable(ours)
                seen.append(os.read(ours, 100))
                reply()
            assert (await running).signal == "SIGTERM"
        return seen

    assert asyncio.run(scenario()) == [b"ready\n", b"cleaning\n", b"clean\n"]


def test_a_child_that_ends_by_itself_leaves_its_own_children_be() -> None:
    program = """
import os, subprocess, sys
subprocess.Popen(["cat"], stdin=int(sys.argv[1]), close_fds=True)
"""
    ours, theirs = os.pipe()
    os.set_inheritable(ours, True)
    assert run(program, str(ours)).code == 0
    [left] = RunProcesses(RUN).pids()
    ended = os.pidfd_open(left)
    os.close(ours)
    os.close(theirs)
    asyncio.run(readable(ended))
    os.close(ended)


LEAVING = "import signal, subprocess; signal.signal(15, signal.SIG_IGN); subprocess.Popen(['sleep', '600'])"


@pytest.mark.parametrize("program", [LEAVING, LEAVING.replace("SIG_IGN", "SIG_DFL")], ids=["stubborn", "mild"])
def test_what_a_child_left_behind_can_be_ended(program: str) -> None:
    assert run(program).code == 0
    left = RunProcesses(RUN)
    deadline = time.monotonic() + 10
    while not left.pids():  # a program that is only just being executed has no environment yet
        assert time.monotonic() < deadline
    assert asyncio.run(end_leftovers(left, patience=0, grace=0.05)) == 1
    assert left.pids() == []


def test_what_ends_by_itself_is_not_told_to(tmp_path: Path) -> None:
    done = tmp_path / "done"
    program = f"import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.1; echo > {done}'])"
    assert run(program).code == 0
    assert asyncio.run(end_leftovers(RunProcesses(RUN), patience=30)) == 0
    assert done.exists()


async def cancel_a_task(argv: list[str], ours: int) -> int:
    task = asyncio.create_task(run_child(argv, ENV))
    daemon = await reported_process(ours)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return daemon


async def cancel_a_scope(argv: list[str], ours: int) -> int:
    daemon = -1
    async with anyio.create_task_group() as group:
        group.start_soon(run_child, argv, ENV)
        daemon = await reported_process(ours)
        group.cancel_scope.cancel()
    return daemon


@pytest.mark.parametrize("cancel", [cancel_a_task, cancel_a_scope])
def test_a_cancelled_call_kills_the_whole_run(cancel: Callable[[list[str], int], Awaitable[int]]) -> None:
    async def scenario() -> None:
        with report() as (ours, theirs):
            daemon = await cancel([PYTHON, "-c", STUBBORN, str(theirs)], ours)
            await readable(daemon)
            os.close(daemon)

    anyio.run(scenario)
    assert RunProcesses(RUN).pids() == []


# --- signals ---

# Runs the rest of its arguments as its child and reports how that ended to the descriptor that is the first.
HARNESS = """
import asyncio, fcntl, json, os, sys, termios
from tapeproxy.proxy.supervisor import run_child
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
outcome = asyncio.run(run_child(sys.argv[2:], os.environ, timeout=20))
os.write(int(sys.argv[1]), json.dumps([outcome.code, outcome.signal, outcome.stopped_by]).encode() + b"\\n")
"""

# Reports the signals that it gets and ends with code 7 at the one named.
AGENT = """
import os, signal, sys
report, last = int(sys.argv[1]), sys.argv[2]
def got(number, frame):
    name = signal.Signals(number).name
    os.write(report, name.encode() + b"\\n")
    if name == last:
        os._exit(7)
for name in "HUP INT QUIT TERM USR1 USR2 WINCH".split():
    signal.signal(getattr(signal, "SIG" + name), got)
os.write(report, f"ready {os.isatty(0)}\\n".encode())
while True:
    signal.pause()
"""


@contextlib.contextmanager
def harness(program: str, *arguments: str, terminal: int | None = None, before: tuple[str, ...] = ()) -> Iterator[Any]:
    """Have a harness in a session of its own run a program; gives the harness's process and its reports."""
    with report() as (ours, theirs):
        words = [*before, PYTHON, "-c", HARNESS, str(theirs), PYTHON, "-c", program, str(theirs), *arguments]
        with subprocess.Popen(
            words, env=ENV, stdin=terminal or subprocess.DEVNULL, pass_fds=[theirs], start_new_session=True
        ) as process:
            try:
                yield process, lambda: read_line(ours)
            finally:
                for pid in RunProcesses(RUN).pids():
                    os.kill(pid, signal.SIGKILL)


def read_line(descriptor: int) -> str:
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], 20)
        assert ready, f"nothing came after {line!r}"
        line += os.read(descriptor, 1)
    return line.decode().strip()


@pytest.mark.parametrize(
    ("name", "stopped_by"),
    [
        ("SIGTERM", "user"),
        ("SIGHUP", "user"),
        ("SIGINT", "user"),
        ("SIGQUIT", "user"),
        ("SIGUSR1", None),
        ("SIGUSR2", None),
        ("SIGWINCH", None),
    ],
)
def test_a_signal_to_us_reaches_the_child(name: str, stopped_by: str | None) -> None:
    with harness(AGENT, name) as (process, next_line):
        assert next_line() == "ready False"
        process.send_signal(signal.Signals[name])
        assert next_line() == f"{name}"
        assert json.loads(next_line()) == [7, None, stopped_by]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_child_that_dies_of_the_signal_is_told_as_such(name: str) -> None:
    program = "import os, signal, sys; os.write(int(sys.argv[1]), b'ready\\n'); signal.pause()"
    with harness(program) as (process, next_line):
        next_line()
        process.send_signal(signal.Signals[name])
        assert json.loads(next_line()) == [None, name, "user"]


def test_a_ctrl_c_at_the_terminal_reaches_the_child_once() -> None:
    master, slave = pty.openpty()
    try:
        with harness(AGENT, "SIGUSR1", terminal=slave) as (process, next_line):
            assert next_line() == "ready True"
            # The child has to have dealt with the terminal's own before we wake: two at once would count as one.
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            for key, name in [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")]:
                os.write(master, key)
                assert next_line() == f"{name}"
            # Handlers run in the order of the numbers: had we passed on either, it would come before this one.
            process.send_signal(signal.SIGUSR1)
            process.send_signal(signal.SIGCONT)
            assert next_line() == "SIGUSR1"
            assert json.loads(next_line())[0] == 7
    finally:
        os.close(master)
        os.close(slave)


def test_a_ctrl_c_that_ends_the_child_leaves_us_to_tell() -> None:
    master, slave = pty.openpty()
    program = "import os, signal, sys; os.write(int(sys.argv[1]), b'ready\\n'); signal.pause()"
    try:
        with harness(program, terminal=slave) as (_, next_line):
            next_line()
            os.write(master, b"\x03")
            assert json.loads(next_line()) == [None, "SIGINT", "user"]
    finally:
        os.close(master)
        os.close(slave)


def test_a_signal_ignored_from_the_start_stays_ignored_for_the_child() -> None:
    program = (
        "import os, signal, sys; os.write(int(sys.argv[1]), repr(signal.getsignal(signal.SIGHUP)).encode() + b'\\n')"
    )
    with harness(program, before=("nohup",)) as (_, next_line):
        assert "SIG_IGN" in next_line()


class Trap(list[str]):
    """A command that has us sent SIGTERM while it is being looked up."""

    def __getitem__(self, at: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return super().__getitem__(at)


def test_a_signal_before_the_child_is_there_reaches_it_then() -> None:
    outcome = asyncio.run(run_child(Trap([PYTHON, "-c", FOREVER]), ENV, timeout=20))
    assert (outcome.signal, outcome.stopped_by) == ("SIGTERM", "user")


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    run("")
    with held_signals() as noted:
        run("")
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert noted == ["SIGTERM", "SIGINT"]
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before


def test_another_thread_may_run_a_child_too() -> None:
    async def scenario() -> Outcome:
        return await asyncio.to_thread(run, "raise SystemExit(3)")

    assert asyncio.run(scenario()).code == 3
