import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import agentruns
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.cli.choose import SUFFIX, begun, choose_tape, default_path, list_tapes, slug
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Head

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the test's own, with an empty `.tapes`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tapes").mkdir()
    return tmp_path / ".tapes"


def touch(path: Path, written: float = 0) -> Path:
    path.write_bytes(b"")
    os.utime(path, (written, written))
    return path


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python agent.py", "agent"),
        ("python3.12 -u -W ignore src/agent.py --fast other.py", "agent"),
        ("./agent.sh --fast", "agent"),
        ("agent", "agent"),
        ("node agent.mjs", "agent"),
        ("uv run --with openai agent.py", "agent"),
        ("uv run agent --fast", "agent"),
        ("python -m agents.planner --fast", "agents.planner"),
        ("python -c print()", "python"),
        ("env A=b python agent.py", "agent"),
        ("npx tsx src/main.ts", "main"),
        ("timeout 5 python agent.py", "agent"),
        ("pytest tests/test_agent.py", "pytest"),
        ("curl https://example.com/x.py", "curl"),
        ("../../../etc/passwd", "passwd"),
        ("python мой.py", "run"),
        ("..", "run"),
        ("", "run"),
    ],
)
def test_a_command_in_a_word(command: str, name: str) -> None:
    assert slug(command.split()) == name


@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_command_gives_a_name_that_is_a_files_name(argv: Sequence[str]) -> None:
    word = slug(argv)
    assert 1 <= len(word) <= 40
    assert not set(word) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert word[0] not in "-."


def test_a_new_tape_is_called_by_time_and_command() -> None:
    expected = Path(".tapes/20260102T030405Z-agent.tape.jsonl.gz")
    assert default_path(["python", "agent.py"], NOW) == expected
    assert default_path(["python", "agent.py"], NOW.astimezone(timezone(timedelta(hours=9)))) == expected


def test_a_name_that_is_taken_gets_a_number(folder: Path) -> None:
    for expected in ("20260102T030405Z-agent", "20260102T030405Z-agent-2", "20260102T030405Z-agent-3"):
        path = default_path(["agent"], NOW)
        assert path == Path(".tapes") / f"{expected}{SUFFIX}"
        touch(folder / path.name)


def begun_at(path: Path, stamp: str) -> Path:
    """A tape whose head says when it was begun; the file is written much later."""
    return agentruns.write_tape(path, [], Head(started_at=stamp))


def test_the_one_that_was_begun_last_comes_last(folder: Path) -> None:
    written = datetime(2026, 1, 2, 3, 4, 4, tzinfo=UTC).timestamp()
    expected = [
        begun_at(folder / "zz-imported.jsonl.gz", "2026-01-02T03:04:03.999999Z"),
        touch(folder / f"no-tape{SUFFIX}", written),
        touch(folder / f"20260102T030405Z-agent{SUFFIX}", 50),
        touch(folder / f"20260102T030405Z-agent-2{SUFFIX}", 51),
        touch(folder / f"20260102T030405Z-agent-10{SUFFIX}", 52),
        begun_at(folder / f"b-copy{SUFFIX}", "2026-01-02T05:04:06+02:00"),
        begun_at(folder / f"a-copy{SUFFIX}", "2026-01-02T03:04:07.000001Z"),
    ]
    touch(folder / "notes.txt")
    (folder / f"a-folder{SUFFIX}").mkdir()
    assert [path.name for path in list_tapes()] == [path.name for path in expected]
    assert choose_tape(None) == Path(".tapes") / f"a-copy{SUFFIX}"


@pytest.mark.parametrize("stamp", ["", "yesterday", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"])
def test_a_head_that_does_not_say_when_leaves_it_to_the_file(folder: Path, stamp: str) -> None:
    path = begun_at(folder / f"x{SUFFIX}", stamp)
    os.utime(path, (77, 77))
    assert begun(path) == datetime(1970, 1, 1, 0, 1, 17, tzinfo=UTC)


def test_digits_that_are_no_date_are_no_time(folder: Path) -> None:
    assert begun(touch(folder / f"20261399T030405Z-agent{SUFFIX}", 77)).year == 1970


def test_no_tape_and_no_folder_are_said(folder: Path) -> None:
    for _ in range(2):
        with pytest.raises(UsageError) as error:
            choose_tape(None)
        assert "there are no tapes here" in str(error.value)
        assert "tapeproxy record" in error.value.fix
        if folder.exists():
            folder.rmdir()


@pytest.mark.parametrize("name", ["x.tape.jsonl.gz", "some/where/x", "../x", "/x/y", ".", ""])
def test_a_path_is_taken_as_it_is(name: str) -> None:
    assert choose_tape(name) == Path(name)


def test_a_name_that_ls_prints_is_found(folder: Path) -> None:
    touch(folder / f"mine{SUFFIX}")
    expected = Path(".tapes") / f"mine{SUFFIX}"
    assert choose_tape(f"mine{SUFFIX}") == choose_tape("mine") == expected
    touch(folder.parent / f"mine{SUFFIX}")
    assert choose_tape(f"mine{SUFFIX}") == Path(f"mine{SUFFIX}")
