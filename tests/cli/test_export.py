import importlib
import stat
from pathlib import Path

import click
import difftapes
import pytest
from click.testing import CliRunner, Result
from difftapes import get, say

from tapeproxy.cli.export import FORMATS, command
from tapeproxy.tapes.errors import NoTapeError, TapeExistsError, UsageError


@pytest.fixture(autouse=True)
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return difftapes.write(Path("x.tape.jsonl.gz"), say("m", "Where?"), get("m", "a", "x" * 30_000))


def run(*args: str) -> Result:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_to_standard_output(output: tuple[str, ...]) -> None:
    result = run("x.tape.jsonl.gz", "--to", "markdown", *output)
    assert result.stdout.startswith("# `python agent.py 'a b'`\n")
    assert result.stderr == "tapeproxy: 1 long text was cut\n"


def test_to_a_file() -> None:
    result = run("x.tape.jsonl.gz", "--to", "markdown", "-o", "t.md")
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1] == "tapeproxy: wrote t.md"
    assert "Where?" in Path("t.md").read_text()
    assert stat.S_IMODE(Path("t.md").stat().st_mode) == 0o600


def test_a_file_that_is_there_is_only_replaced_by_force() -> None:
    Path("t.md").write_text("mine")
    with pytest.raises(TapeExistsError):
        run("x.tape.jsonl.gz", "--to", "markdown", "-o", "t.md")
    assert Path("t.md").read_text() == "mine"
    run("x.tape.jsonl.gz", "--to", "markdown", "-o", "t.md", "--force")
    assert "Where?" in Path("t.md").read_text()


def test_what_cannot_be_done() -> None:
    with pytest.raises(UsageError, match="the file cannot be written"):
        run("x.tape.jsonl.gz", "--to", "markdown", "-o", "nowhere/t.md")
    with pytest.raises(NoTapeError):
        run("nothing.tape.jsonl.gz", "--to", "markdown")
    with pytest.raises(click.BadParameter):
        run("x.tape.jsonl.gz", "--to", "papyrus")


def test_a_tape_that_a_format_cannot_hold() -> None:
    difftapes.write(Path("none.tape.jsonl.gz"))
    with pytest.raises(UsageError, match="it cannot be exported: no exchange has an answer"):
        run("none.tape.jsonl.gz", "--to", "vcr", "-o", "x.yaml")
    assert not Path("x.yaml").exists()


def test_each_format_has_its_module_and_is_told() -> None:
    for name, form in FORMATS.items():
        assert callable(importlib.import_module(f"tapeproxy.{form.module}").export)
        assert f"{name:<9}  {form.what}" in (command.help or "")
