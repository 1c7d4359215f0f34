"""Whether a replay is above a process that sees nobody's variables: real processes, and a real `ps`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapeproxy.proxy.childenv import REPLAY_VARIABLE
from tapeproxy.proxy.mcprun import find_run
from tapeproxy.proxy.replaymarks import is_within, marked

ASK = "import sys; from pathlib import Path; from tapeproxy.proxy.replaymarks import is_within; "
ASK += "print(is_within(Path(sys.argv[1])))"


def ask(marks: Path, path: str | None = None) -> str:
    """What a child of this process says."""
    env = os.environ | ({} if path is None else {"PATH": path})
    argv = [sys.executable, "-c", ASK, str(marks)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_a_process_below_a_replay_knows_it(tmp_path: Path) -> None:
    marks = tmp_path / "replays"
    assert (is_within(marks), ask(marks)) == (False, "False")
    with marked({REPLAY_VARIABLE: "1"}, marks):
        assert ask(marks) == "True"
        assert find_run({"HOME": "/"}, marks).mode == "unknown"
    assert [*marks.iterdir()] == []
    assert find_run({"HOME": "/"}, marks).mode == "none"


def test_a_recording_is_not_marked(tmp_path: Path) -> None:
    with marked({}, tmp_path / "replays"):
        assert not (tmp_path / "replays").exists()


def test_a_replay_of_somebody_else_is_not_above(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (tmp_path / str(other.pid)).touch()
        assert ask(tmp_path) == "False"
        assert ask(tmp_path, path=str(tmp_path)) == "True", "without ps nobody can tell"
        other.communicate(b"\n")


def test_a_folder_that_cannot_be_written_harms_no_replay(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with marked({REPLAY_VARIABLE: "1"}, tmp_path / "file" / "replays"):
        assert not is_within(tmp_path / "file" / "replays")


@pytest.mark.skipif(sys.platform != "linux", reason="there they are marked")
def test_on_linux_the_variables_above_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path))
    with marked({REPLAY_VARIABLE: "1"}):
        assert [*tmp_path.iterdir()] == []
