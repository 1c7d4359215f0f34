"""Tapes that can't be written any more while an agent runs: it is unharmed and warned of, or stopped; no silent gap."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clirun import Cli, maps
from origin import Call, Origin

from tapeproxy.proxy.tapefile import load

# Asks as often as it is told to, and then runs a program of its own: the shim in there needs its folder, too.
AGENT = """
import subprocess, sys, urllib.request
for line in sys.stdin:
    with urllib.request.urlopen("http://search.example.com/" + line.strip()) as answer:
        print(len(answer.read()), flush=True)
print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True))
"""
UNHARMED = "stdout='1\\n', stderr='')"
SIZE = 20_000


async def answer(call: Call) -> None:
    await call.reply(os.urandom(SIZE))


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin(answer) as origin:
        yield origin


class Run:
    """A recording whose agent asks when `ask` is called."""

    def __init__(self, cli: Cli, origin: Origin, *words: str, tape: str = "tapes/t.jsonl.gz") -> None:
        self.tape = cli.cwd / tape
        self.tape.parent.mkdir(exist_ok=True)
        (cli.cwd / "agent.py").write_text(AGENT)
        command = ["record", "-o", tape, *words, *maps(origin.url), "--", sys.executable, "agent.py"]
        self.process = cli.start(*command, stdin=subprocess.PIPE)

    def ask(self, times: int = 1) -> None:
        """Have the agent ask, and see that it gets its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for n in range(times):
            self.process.stdin.write(f"{n}\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == f"{SIZE}\n"

    def end(self) -> tuple[int, str, str]:
        """Exit code and the rest of what was printed."""
        stdout, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stdout, stderr


def remove_folder(tape: Path) -> None:
    shutil.rmtree(tape.parent)


def shorten(tape: Path) -> None:
    os.truncate(tape, tape.stat().st_size - 5)


def replace(tape: Path) -> None:
    other = tape.with_name("other")
    other.write_bytes(b"mine")
    other.replace(tape)


DONE: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder removed": (remove_folder, "it was removed or replaced"),
    "file replaced": (replace, "it was removed or replaced"),
    "file shortened": (shorten, "something else shortened it"),
}


@pytest.mark.parametrize("name", DONE)
def test_what_is_done_to_a_tape_is_warned_of_and_does_not_touch_the_agent(cli: Cli, origin: Origin, name: str) -> None:
    do, why = DONE[name]
    run = Run(cli, origin)
    run.ask()
    do(run.tape)
    left = run.tape.read_bytes() if run.tape.exists() else b""
    run.ask()
    # At once: while the agent still runs.
    assert run.process.stderr is not None
    told = [run.process.stderr.readline() for _ in range(3)]
    assert told == [
        f"tapeproxy: warning: tapes/t.jsonl.gz: the tape cannot be written any more: {why}\n",
        "  leave a tape alone while it is being written\n",
        "tapeproxy: the run goes on, and is not taped whole\n",
    ]
    run.ask(2)
    code, stdout, stderr = run.end()
    assert UNHARMED in stdout
    assert code == 5
    assert stderr.startswith("tapeproxy: the tape is not whole: tapes/t.jsonl.gz: the tape cannot be written")
    assert stderr.count(why) == 1
    assert (run.tape.read_bytes() if run.tape.exists() else b"") == left, "what somebody else made of it is theirs"


def test_a_tape_that_was_moved_is_written_on_and_not_silently_lost(cli: Cli, origin: Origin) -> None:
    run = Run(cli, origin)
    run.ask()
    (cli.cwd / "moved").mkdir()
    run.tape.rename(cli.cwd / "moved/t.jsonl.gz")
    run.ask(2)
    code, stdout, stderr = run.end()
    assert UNHARMED in stdout
    assert code == 5
    assert stderr.count("it was moved away or replaced") == 2
    tape, ending = load(cli.cwd / "moved/t.jsonl.gz")
    assert (len(tape.exchanges), ending.sealed) == (3, False)


def test_permissions_that_are_taken_away_do_not_matter_to_an_open_tape(cli: Cli, origin: Origin) -> None:
    run = Run(cli, origin)
    run.ask()
    run.tape.chmod(0o400)
    run.tape.parent.chmod(0o500)
    run.ask()
    code, stdout, stderr = run.end()
    run.tape.parent.chmod(0o700)
    assert (code, "not whole" in stderr) == (0, False)
    assert UNHARMED in stdout
    assert load(run.tape)[1].canonical


def test_strict_tape_stops_the_run_with_a_code_of_its_own(cli: Cli, origin: Origin) -> None:
    run = Run(cli, origin, "--strict-tape")
    run.ask()
    run.tape.unlink()
    assert run.process.stdin is not None
    run.process.stdin.write("again\n")
    run.process.stdin.flush()
    assert run.process.wait(30) == 6, "the agent still waits for its input"
    _, stdout, stderr = run.end()
    assert UNHARMED not in stdout
    assert "tapeproxy: the run is stopped (--strict-tape)\n" in stderr
    assert "tapeproxy: stopped the run: its tape could not be written whole (--strict-tape)\n" in stderr


def test_strict_tape_ends_a_proxy_that_runs_by_itself(cli: Cli, origin: Origin) -> None:
    running = cli.start("start", "-o", "tapes/t.jsonl.gz", "--strict-tape", *maps(origin.url))
    assert running.stderr is not None
    assert "listening" in running.stderr.readline()
    (cli.cwd / "tapes/t.jsonl.gz").unlink()
    agent = cli.cwd / "agent.py"
    agent.write_text(AGENT)
    shell = f'eval "$({sys.executable} -m tapeproxy.cli.main env)"; echo 1 | {sys.executable} {agent}'
    subprocess.run(["sh", "-c", shell], cwd=cli.cwd, env=cli.environment(), capture_output=True, check=False)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 6, stderr
    assert "tapeproxy: the run is stopped (--strict-tape)\n" in stderr


def test_strict_tape_changes_nothing_where_nothing_fails(cli: Cli, origin: Origin) -> None:
    run = Run(cli, origin, "--strict-tape", "--fsync")
    run.ask(3)
    code, _, stderr = run.end()
    assert (code, "not whole" in stderr) == (0, False)
    assert load(run.tape)[1].canonical


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 KB, mounted for one test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=200k", "tapeproxy-test", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("needs root on Linux, to mount a small disk")
    if subprocess.run([mount, *options], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("freed", [False, True], ids=["full", "freed again"])
def test_a_full_disk_ends_the_tape_for_good(cli: Cli, origin: Origin, small_disk: Path, freed: bool) -> None:
    other = small_disk / "other"
    other.write_bytes(bytes(100_000))
    run = Run(cli, origin, tape="disk/t.jsonl.gz")
    run.ask(6)
    if freed:
        other.unlink()
    run.ask(3)
    code, stdout, stderr = run.end()
    assert UNHARMED in stdout
    assert code == 5
    assert stderr.count("the tape cannot be written: no space left on device") == 2
    assert stderr.count("free some space, or name a tape elsewhere with -o") == 2
    tape, ending = load(run.tape)
    assert (ending.sealed, ending.lost) == (False, 0)
    # A tape with a hole in it would be one that a replay believes.
    assert 0 < len(tape.exchanges) < 7


def test_a_long_running_proxy_says_it_at_once_too(cli: Cli, origin: Origin) -> None:
    running = cli.start("start", "-o", "t.jsonl.gz", *maps(origin.url))
    assert running.stderr is not None
    assert "listening on" in running.stderr.readline()
    (cli.cwd / "t.jsonl.gz").unlink()
    shell = f'eval "$({sys.executable} -m tapeproxy.cli.main env)"; echo 1 | {sys.executable} agent.py'
    (cli.cwd / "agent.py").write_text(AGENT)
    done = subprocess.run(["sh", "-c", shell], cwd=cli.cwd, env=cli.environment(), capture_output=True, check=False)
    assert done.stdout.startswith(f"{SIZE}\n".encode()), done.stderr
    assert "cannot be written any more: it was removed or replaced" in running.stderr.readline()
    cli.run("stop")
    running.communicate(timeout=30)
    assert running.returncode == 5


def test_a_name_with_no_room_for_the_shim_s_folder_is_one_clear_error(cli: Cli) -> None:
    name = "x" * 240 + ".gz"
    done = cli.run("record", "-o", name, "--", "true")
    assert done.returncode == 5
    assert f"{name}.sidecar-" in done.stderr
    assert "the folder for what the shim writes cannot be made: file name too long\n" in done.stderr
    assert [*cli.cwd.iterdir()] == []
