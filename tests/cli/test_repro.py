"""`tapeproxy repro`: tests of taped runs, which are tried before they count."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import agentruns
import pytest
import warm
from clirun import Cli

from tapeproxy.tapes.records import Exit, Head, Record

AGENT = """
import sys, urllib.request
for path in sys.argv[1:]:
    print(urllib.request.urlopen("http://api.test" + path).read().decode())
raise KeyError("price")
"""
HEAD = Head(started_at="2026-01-02T03:04:05Z", argv=("python", "agent.py", "/one"), cwd="/home/ada", secrets=("A_KEY",))
PLACE = "tests/tapes/test_bug/test_bug.run1.tape.jsonl.gz"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """In a repository with an agent that fails."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "tests").mkdir()
    (project / "pytest.ini").write_text("[pytest]\naddopts = -p no:asyncio\n")
    (project / "agent.py").write_text(AGENT)
    tape(project)
    return Cli(project, tmp_path / "home")


def tape(folder: Path, *, outcome: str = "exited", ended: Exit | None = None, sealed: bool = True) -> None:
    """The tape of a run of the agent that asked for /one."""
    records: list[Record] = agentruns.exchange(1, "http://api.test/one", chunks=[b"1"])
    records.append(ended or Exit(t=9, code=1))
    (folder / "bug.tape.jsonl.gz").write_bytes(agentruns.tape_bytes(records, HEAD, sealed=sealed, outcome=outcome))


PLAIN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "tapeproxy.plugin.entry"}
"""Has pytest load our plugin alone, and not all that this environment has, which takes a second."""


def repro(
    cli: Cli, *words: str, output: str = "tests/test_bug.py", plain: bool = True
) -> "subprocess.CompletedProcess[str]":
    argv = ["--", sys.executable, "agent.py", "/one"]
    environment = {"A_KEY": "k" * 20} | (PLAIN if plain else {})
    return cli.run("repro", "bug.tape.jsonl.gz", "--pytest", "-o", output, *words, *argv, env=environment)


def test_a_test_that_passes_while_the_bug_is_there(cli: Cli) -> None:
    done = repro(cli, "--json", plain=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["verified"] and told["doubt"] is None and told["foreign"] == []
    assert (told["test"], told["tape"], told["exchanges"]) == ("tests/test_bug.py", PLACE, 1)
    text = (cli.cwd / "tests/test_bug.py").read_text()
    assert "\nverified: 20" in text and ", exit 1 as recorded\n" in text
    assert 'COMMAND = [sys.executable, "agent.py", "/one"]' in text and str(cli.cwd) not in text
    assert (cli.cwd / PLACE).read_bytes() == (cli.cwd / "bug.tape.jsonl.gz").read_bytes()
    assert "exists" in repro(cli).stderr
    # Elsewhere, with workers, and once the bug is gone.
    elsewhere = cli.cwd.rename(cli.cwd.with_name("elsewhere"))
    assert run_tests(cli, elsewhere, "-n", "2").returncode == 0
    (elsewhere / "agent.py").write_text(AGENT.replace("raise KeyError", "print"))
    assert "assert 0 == 1" in run_tests(cli, elsewhere).stdout


def run_tests(cli: Cli, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return warm.run(argv, folder, cli.environment(CI="true") | ({} if words else PLAIN))


def test_a_test_that_waits_for_the_fix(cli: Cli) -> None:
    done = repro(cli, "--expect", "fixed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified: the run goes as it was recorded, and the test fails" in done.stdout
    (cli.cwd / "agent.py").write_text(AGENT.replace("raise KeyError", "print"))
    assert run_tests(cli, cli.cwd).returncode == 0


@pytest.mark.parametrize(
    ("agent", "doubt"),
    [
        (AGENT.replace("raise KeyError", "print"), "a replay exits 0, and the recorded run exited 1"),
        (AGENT.replace("+ path", "+ path + '?x'"), "a replay makes a violation: this request is not on the tape"),
        ("raise SystemExit(1)", "a replay did not ask for all that is on the tape: exchanges 1"),
    ],
)
def test_a_run_that_does_not_come_again(cli: Cli, agent: str, doubt: str) -> None:
    (cli.cwd / "agent.py").write_text(agent)
    done = repro(cli)
    assert done.returncode == 1
    assert f"unverified: {doubt}" in done.stdout
    text = (cli.cwd / "tests/test_bug.py").read_text()
    assert f"unverified: {doubt}" in " ".join(text.split())
    assert " in run.stderr" not in text  # what it died of is known of no run but the recorded one
    ast.parse(text)


def test_a_python_without_pytest(cli: Cli, tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    cases = f'case "$*" in *pytest*) exec {sys.executable} -S "$@";; esac'
    bare.write_text(f'#!/bin/sh\n{cases}\nexec {sys.executable} "$@"\n')
    bare.chmod(0o755)
    done = repro(cli, "--python", str(bare))
    assert done.returncode == 1
    assert f"unverified: there is no pytest for {bare}: name the Python that has it with --python" in done.stdout


@pytest.mark.parametrize(
    ("made", "words", "said"),
    [
        ({"sealed": False}, [], "does not hold how the run would have ended by itself: interrupted"),
        ({"outcome": "timeout"}, [], "does not hold how the run would have ended by itself: timeout"),
        ({"ended": Exit(t=9, code=0)}, ["--expect", "fixed"], "did not fail, so there is nothing to be fixed"),
    ],
)
def test_tapes_that_make_no_test(cli: Cli, made: dict[str, object], words: list[str], said: str) -> None:
    tape(cli.cwd, **made)  # type: ignore[arg-type]
    done = repro(cli, *words)
    assert done.returncode == 2 and said in done.stderr
    assert os.listdir(cli.cwd / "tests") == []  # noqa: PTH208


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["repro", "bug.tape.jsonl.gz"], "tapeproxy repro bug.tape.jsonl.gz --pytest -o tests/test_bug.py"),
        (["repro", "bug.tape.jsonl.gz", "--pytest", "-o", "tests/bug.py"], "pytest finds tests in files called test_"),
        (["repro", "bug.tape.jsonl.gz", "--pytest", "-o", "test_a.py"], "in the folder where it runs: tapeproxy repro"),
        (
            ["repro", "bug.tape.jsonl.gz", "--pytest", "-o", "../other/test_a.py", "--", "true"],
            "outside of the test's repository",
        ),
    ],
)
def test_what_is_refused(cli: Cli, words: list[str], said: str) -> None:
    done = cli.run(*words)
    assert done.returncode == 2 and said in done.stderr


def test_words_that_are_paths(cli: Cli, tmp_path: Path) -> None:
    (cli.cwd / "agent.py").write_text("raise SystemExit(0)")
    argv = ["--", sys.executable, str(cli.cwd / "agent.py"), str(tmp_path), "/not/here"]
    done = cli.run("repro", "bug.tape.jsonl.gz", "--pytest", "-o", "tests/test_bug.py", *argv)
    assert f"note: the command names {tmp_path}, which other machines may not have" in done.stdout
    assert done.stdout.count("note: ") == 1
    text = (cli.cwd / "tests/test_bug.py").read_text()
    assert 'sys.executable,\n    str(FOLDER / "agent.py"),\n' in text


def test_secrets_that_are_left(cli: Cli) -> None:
    records = agentruns.exchange(1, "http://api.test/one", chunks=[b'{"k": "AKIAIOSFODNN7EXAMPLF"}'])
    agentruns.write_tape(cli.cwd / "bug.tape.jsonl.gz", [*records, Exit(t=9, code=1)], HEAD)
    (cli.cwd / "agent.py").write_text("raise SystemExit(0)")
    assert "looks like a secret; see: tapeproxy scrub --check tests/tapes/" in repro(cli).stderr
