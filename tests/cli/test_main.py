"""How the command line takes slips: each is one clear error of ours, and exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapeproxy.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an agent, a script and a file that is neither."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n")
    (tmp_path / "agent.sh").chmod(0o755)
    (tmp_path / "agent.py").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "bug.tape.jsonl.gz").touch(0o755)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines of the error that the words lead to."""
    with pytest.raises(SystemExit) as exit:
        main([*words])
    out, err = capsys.readouterr()
    assert (exit.value.code, out) == (2, "")
    assert err.startswith("tapeproxy: ")
    return err.removeprefix("tapeproxy: ").splitlines()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("record ./agent.sh -v", "record -- ./agent.sh -v"),
        ("record ./agent.sh", "record -- ./agent.sh"),
        ("record -o x --force ./agent.sh --verbose -o y", "record -o x --force -- ./agent.sh --verbose -o y"),
        ("record no-such-thing -v", "record -- no-such-thing -v"),
        ("replay ./agent.sh -v", "replay -- ./agent.sh -v"),
        ("replay agent.py", "replay -- agent.py"),
        ("replay sh", "replay -- sh"),
        ("replay --pace 2 sh agent.sh", "replay --pace 2 -- sh agent.sh"),
        ("replay bug.tape.jsonl.gz ./agent.sh", "replay bug.tape.jsonl.gz -- ./agent.sh"),
        ("replay bug.tape.jsonl.gz -q python -u a.py", "replay bug.tape.jsonl.gz -q -- python -u a.py"),
    ],
)
def test_an_agent_without_the_dashes(capsys: pytest.CaptureFixture[str], words: str, advice: str) -> None:
    assert refused(capsys, *words.split()) == [
        "the agent's command needs -- in front of it",
        f"  run: tapeproxy {advice}",
    ]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("recrod", ["there is no command 'recrod'", "  did you mean: tapeproxy record"]),
        ("lsit", ["there is no command 'lsit'", "  did you mean: tapeproxy ls"]),
        ("qqq", ["there is no command 'qqq'", "  see: tapeproxy --help"]),
        ("notes.txt", ["there is no command 'notes.txt'", "  see: tapeproxy --help"]),
        ("true -c 1", ["there is no command 'true'", "  to record it: tapeproxy record -- true -c 1"]),
        (
            "stat x",
            [
                "there is no command 'stat'",
                "  did you mean: tapeproxy start",
                "  to record it: tapeproxy record -- stat x",
            ],
        ),
        ("./agent.sh x", ["there is no command './agent.sh'", "  to record it: tapeproxy record -- ./agent.sh x"]),
        ("agent.py", ["there is no command 'agent.py'", "  to record it: tapeproxy record -- agent.py"]),
    ],
)
def test_an_unknown_command(capsys: pytest.CaptureFixture[str], words: str, lines: list[str]) -> None:
    assert refused(capsys, *words.split()) == lines


@pytest.mark.parametrize(
    ("words", "first", "help"),
    [
        ("ls -x", "no such option '-x'", "tapeproxy ls"),
        ("ls extra", "got unexpected extra argument (extra)", "tapeproxy ls"),
        ("replay bug.tape.jsonl.gz --bogus", "no such option '--bogus'", "tapeproxy replay"),
        ("replay bug.tape.jsonl.gz --pace 0", "invalid value for '--pace'", "tapeproxy replay"),
        ("record --timeout soon -- true", "invalid value for '--timeout': 'soon'", "tapeproxy record"),
        ("--bogus", "no such option '--bogus'", "tapeproxy"),
    ],
)
def test_what_click_finds_is_said_in_our_words(
    capsys: pytest.CaptureFixture[str], words: str, first: str, help: str
) -> None:
    said, see = refused(capsys, *words.split())
    assert said.startswith(first)
    assert see == f"  see: {help} --help"


def test_what_has_no_command_or_tape_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert "put it after --" in refused(capsys, "record")[1]
    assert refused(capsys, "show", "absent.tape.jsonl.gz")[1] == "  `tapeproxy ls` lists the tapes here"


def test_alone_it_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([])
    assert exit.value.code == 2
    assert capsys.readouterr().err.startswith("Usage: tapeproxy [OPTIONS] COMMAND")


@pytest.mark.parametrize("words", ["--help", "show --help", "show {tape}", "show {tape} --json"])
def test_a_reader_that_has_left_is_no_error_of_ours(words: str) -> None:
    tape = Path(__file__).parents[1] / "golden" / "v1.tape.jsonl.gz"
    gone, ours = os.pipe()
    os.close(gone)
    command = [sys.executable, "-m", "tapeproxy.cli.main", *words.format(tape=tape).split()]
    try:
        done = subprocess.run(command, stdout=ours, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(ours)
    assert (done.returncode, done.stderr) == (141, b"")


LEAVES = """
import atexit, sys, threading, weakref
from tapeproxy.cli import main
class Thing: pass
thing = Thing()
weakref.finalize(thing, print, "finalized")
atexit.register(print, "at exit")
sys.argv = ["tapeproxy", "--version"]
{before}
main.main()
"""


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("", 0),
        ("sys.argv[1] = 'recrod'", 2),
        ("sys.setprofile(lambda *_: None)", 0),
        ("go = threading.Event(); threading.Thread(target=lambda: (go.wait(), print('waited for'))).start(); "
         "threading._register_atexit(go.set)", 0),
    ],
)  # fmt: skip
def test_the_process_leaves_nothing_undone(before: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES.format(before=before)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code, done.stderr
    assert {"finalized", "at exit"} <= {*done.stdout.splitlines()}
    assert ("waited for" in done.stdout) == ("waited" in before)
