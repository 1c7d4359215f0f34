"""The TMPDIR of a replay is empty when the agent starts, and what lay in it is there again afterwards."""

from pathlib import Path

import pytest

from tapeproxy.proxy.tmpdir import Tmpdir


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that a recording has left two things in."""
    folder = tmp_path / "tapeproxy-x"
    folder.mkdir(mode=0o700)
    (folder / "report").write_text("old")
    (folder / "pytest-0").mkdir()
    (folder / "pytest-0" / "log").write_text("old")
    return folder


def seen(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_was_there_is_there_again(folder: Path) -> None:
    tmpdir = Tmpdir(folder)
    assert not tmpdir.shared
    assert seen(folder) == {}
    (folder / "new").write_text("new")
    (folder / "report").write_text("new")
    tmpdir.close(sweep=False)
    assert seen(folder) == {"report": "new", "new": "new", "pytest-0/log": "old"}
    assert list(folder.parent.iterdir()) == [folder]


def test_a_sweep_takes_only_what_the_run_has_made(folder: Path) -> None:
    before = seen(folder)
    tmpdir = Tmpdir(folder)
    (folder / "report").mkdir()
    (folder / "link").symlink_to(folder.parent)
    tmpdir.close(sweep=True)
    assert seen(folder) == before
    assert folder.parent.is_dir()


def test_an_empty_one_goes(tmp_path: Path) -> None:
    folder = tmp_path / "tapeproxy-x"
    folder.mkdir()
    Tmpdir(folder).close(sweep=False)
    assert list(tmp_path.iterdir()) == []


def test_one_that_the_agent_has_removed_comes_back_with_what_was_in_it(folder: Path) -> None:
    before = seen(folder)
    tmpdir = Tmpdir(folder)
    folder.rmdir()
    tmpdir.close(sweep=True)
    assert seen(folder) == before


def test_what_a_killed_replay_left_does_not_get_in_the_way(folder: Path) -> None:
    killed = Tmpdir(folder)
    (folder / "report").write_text("killed")
    (folder / "other").write_text("killed")
    killed.forget()
    tmpdir = Tmpdir(folder)
    assert seen(folder) == {}
    tmpdir.close(sweep=False)
    assert seen(folder) == {"report": "old", "pytest-0/log": "old", "other": "killed"}


def test_two_at_once(folder: Path) -> None:
    first = Tmpdir(folder)
    (folder / "mine").write_text("first")
    second = Tmpdir(folder)
    assert second.shared
    second.close(sweep=True)
    assert seen(folder) == {"mine": "first"}
    first.close(sweep=True)
    assert set(seen(folder)) == {"report", "pytest-0/log"}
