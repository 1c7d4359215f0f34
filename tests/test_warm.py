"""A command that is forked from a warm process is the one that is started from nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
import warm
from clirun import Cli

SCRIPT = """
import os, signal, sys
print(sys.argv, sys.path[0] == os.path.dirname(__file__), os.getcwd(), sorted(os.environ))
print(sorted(os.listdir("/dev/fd")))
print([(stream.encoding, stream.errors, stream.line_buffering) for stream in (sys.stdin, sys.stdout, sys.stderr)])
print(sys.stdin.read(), __name__, signal.getsignal(signal.SIGINT), file=sys.stderr)
if "die" in sys.argv:
    os.kill(os.getpid(), signal.SIGTERM)
if "raise" in sys.argv:
    raise ValueError("süß")
sys.exit(int(sys.argv[1]))
"""


def both(argv: list[str], cli: Cli, input: str = "") -> list[subprocess.CompletedProcess[str]]:
    """What comes of it when it is forked, and started."""
    forked = warm.run(argv, cli.cwd, cli.environment(), input)
    env = cli.environment()
    return [forked, subprocess.run(argv, cwd=cli.cwd, env=env, input=input, capture_output=True, text=True)]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path, tmp_path / "home")


@pytest.mark.parametrize("words", [["0"], ["7", "ä"], ["0", "die"], ["0", "raise"]])
def test_a_script_finds_what_it_would_find(words: list[str], cli: Cli) -> None:
    path = cli.cwd / "script.py"
    path.write_text(SCRIPT)
    one, other = both([sys.executable, str(path), *words], cli, "from us")
    assert (one.returncode, one.stdout, "from us" in one.stderr) == (other.returncode, other.stdout, True)
    assert one.stderr.splitlines()[-1] == other.stderr.splitlines()[-1]


@pytest.mark.parametrize("words", [["--version"], ["status"], ["record", "--", "nothing-of-this-name"]])
def test_a_command_says_what_it_would_say(words: list[str], cli: Cli) -> None:
    one, other = both(cli.argv(*words), cli)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


@pytest.mark.parametrize("code", ["signal.pause()", "subprocess.Popen([sys.executable, '-c', WAIT], stdin=-1)"])
def test_one_that_does_not_end_is_not_waited_for(code: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"import signal, subprocess, sys\nWAIT = 'import time; time.sleep(2)'\n{code}")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.warm().run([str(path)], tmp_path, {}, "", 0.5)


def test_what_an_interpreter_looks_at_when_it_starts_is_started(cli: Cli) -> None:
    path = cli.cwd / "script.py"
    path.write_text("import sys; print(sys.flags.utf8_mode, sys.orig_argv[1:])")
    done = warm.run([sys.executable, str(path)], cli.cwd, cli.environment() | {"PYTHONUTF8": "1"})
    assert done.stdout == f"1 {[str(path)]}\n"
