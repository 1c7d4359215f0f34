"""`tapeproxy view`: what file it writes, and of what."""

import stat
from pathlib import Path

import agentruns
import pytest
from click.testing import CliRunner
from difftapes import get, write

from tapeproxy.cli.view import command
from tapeproxy.tapes.errors import NoTapeError, TapeproxyError, UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def view(*args: str) -> str:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_a_tape_becomes_one_file_that_its_owner_can_read(folder: Path) -> None:
    agentruns.write_tape(folder / "run.tape.jsonl.gz", agentruns.sample())
    assert view("run.tape.jsonl.gz") == "tapeproxy: wrote run.html\n"
    page = (folder / "run.html").read_text()
    assert "id=tp-file" in page
    assert stat.S_IMODE((folder / "run.html").stat().st_mode) == 0o600
    with pytest.raises(TapeproxyError):
        view("run.tape.jsonl.gz")
    view("run.tape.jsonl.gz", "--force", "--no-file")
    assert "id=tp-file" not in (folder / "run.html").read_text()


def test_two_tapes_become_a_comparison(folder: Path) -> None:
    write(folder / "a.tape.jsonl.gz", get("m", "x"))
    write(folder / "b.tape.jsonl.gz", get("m", "y"))
    assert view("a.tape.jsonl.gz", "b.tape.jsonl.gz", "-o", "d.html") == "tapeproxy: wrote d.html\n"
    page = (folder / "d.html").read_text()
    assert "<title>a.tape.jsonl.gz and b.tape.jsonl.gz</title>" in page
    assert "id=tp-differences" in page


def test_what_is_not_there_is_told() -> None:
    with pytest.raises((NoTapeError, UsageError)):
        view("gone.tape.jsonl.gz")
