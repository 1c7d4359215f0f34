"""`tapeproxy doctor --scan`, from the outside."""

import json
from pathlib import Path

import pytest
from clirun import Cli

PID = "import os\nprint(os.getpid())\n"
STDIN = "x = input()\n"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path, tmp_path / "home")


def test_a_scan_names_line_reason_and_cure(cli: Cli) -> None:
    (cli.cwd / "agent.py").write_text(PID + STDIN)
    done = cli.run("doctor", "--scan", "agent.py")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["error TP101: process or thread id", "  agent.py:2:7  os.getpid()", "      print(os.getpid())"]
    assert lines[-1] == "1 error, 1 note: 1 file read"


@pytest.mark.parametrize(
    ("text", "code"), [(PID, 1), (STDIN, 0), ("x = 1\n", 0), ("def f(:", 1), (PID.rstrip() + "  # tapeproxy: ok", 0)]
)
def test_findings_fail_where_asked(cli: Cli, text: str, code: int) -> None:
    (cli.cwd / "agent.py").write_text(text)
    assert cli.run("doctor", "--scan", "--fail-on-findings", ".").returncode == code


def test_json_is_one_document(cli: Cli) -> None:
    (cli.cwd / "agent.py").write_text(PID)
    document = json.loads(cli.run("doctor", "--json", "agent.py", "--scan").stdout)
    assert document["files"] == 1
    assert [(f["code"], f["line"], f["what"]) for f in document["findings"]] == [("TP101", 2, "os.getpid()")]


def test_an_empty_folder_and_a_clean_one_say_so(cli: Cli) -> None:
    assert cli.run("doctor", "--scan", ".").stdout == "nothing found: no Python file was read\n"
    (cli.cwd / "a.py").write_text("")
    assert cli.run("doctor", "--scan", ".").stdout == "nothing found: 1 file read\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scan"], "--scan needs a file or a folder"),
        (["--scan", "none.py"], "none.py: there is no such file or folder"),
        (["--scan", "--nonsense"], "no such option"),
    ],
)
def test_wrong_usage_is_told(cli: Cli, words: list[str], says: str) -> None:
    done = cli.run("doctor", *words)
    assert done.returncode == 2
    assert says in done.stderr


def test_names_and_lines_cannot_act_on_the_terminal(cli: Cli) -> None:
    (cli.cwd / "a\x1b[31m.py").write_text("import os\nprint(os.getpid(), '\x1b[2J')\n")
    assert "\x1b" not in cli.run("doctor", "--scan", ".").stdout
