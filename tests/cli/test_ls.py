import dataclasses
import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import agentruns
import pytest
from click.exceptions import Abort
from click.testing import CliRunner, Result

from tapeproxy.cli.ls import command, prune
from tapeproxy.proxy.sidecar import make_folder
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.records import Head


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `.tapes` of a working folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tapes").mkdir()
    return Path(".tapes")


def tape(name: str, days: float = 0, *, sealed: bool = True, head: Head = agentruns.HEAD) -> Path:
    """A tape that was begun so many `days` ago; 0: when its head says. The file is always new."""
    if days:
        begun = datetime.now(UTC) - timedelta(days=days)
        head = dataclasses.replace(head, started_at=begun.isoformat().replace("+00:00", "Z"))
    return agentruns.write_tape(Path(".tapes") / f"{name}.tape.jsonl.gz", agentruns.sample(), head, sealed=sealed)


def ls(*args: str) -> Result:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def names() -> list[str]:
    return sorted(path.name.split(".")[0] for path in Path(".tapes").iterdir())


def test_the_tapes_newest_last() -> None:
    tape("20260102T000000Z-b")
    tape("20260101T000000Z-a", sealed=False)
    rows = [line.split() for line in ls().output.splitlines()]
    assert rows[0] == ["name", "when", "command", "exchanges", "size", "outcome"]
    assert [row[0] for row in rows[1:]] == ["20260101T000000Z-a.tape.jsonl.gz", "20260102T000000Z-b.tape.jsonl.gz"]
    assert rows[1][3:] == ["python", "agent.py", "'a", "b'", "4", "2.1", "kB", "interrupted"]
    assert rows[2][-2:] == ["exit", "3"]


def test_the_tapes_as_json() -> None:
    path = tape("20260101T000000Z-a")
    given: list[dict[str, Any]] = json.loads(ls("--json").output)["tapes"]
    assert given == [
        {
            "name": path.name,
            "path": str(path),
            "started_at": "2026-01-02T03:04:05.000000Z",
            "argv": ["python", "agent.py", "a b"],
            "exchanges": 4,
            "size": path.stat().st_size,
            "outcome": "exit 3",
            "sealed": True,
            "damage": None,
            "redacted": True,
        }
    ]
    assert all(name in str(command.help) for name in given[0])


def test_what_is_no_tape_is_left_out_and_what_is_damaged_is_said(folder: Path) -> None:
    (folder / "log.jsonl.gz").write_bytes(gzip.compress(b'{"k":"log"}\n'))
    (folder / "empty.tape.jsonl.gz").write_bytes(b"")
    damaged = tape("damaged")
    damaged.write_bytes(gzip.compress(gzip.decompress(damaged.read_bytes()).replace(b"Paris", b"Turin")))
    given = json.loads(ls("--json").output)["tapes"]
    assert [(row["name"], row["outcome"], row["sealed"]) for row in given] == [(damaged.name, "damaged", False)]
    assert "line 2" in given[0]["damage"]


def test_no_tapes(folder: Path) -> None:
    for _ in range(2):
        result = ls()
        assert result.stdout == ""
        assert "no tapes in .tapes/" in result.stderr
        assert json.loads(ls("--json").output) == {"tapes": []}
        if folder.exists():
            folder.rmdir()


def test_a_tape_whose_recorder_still_runs() -> None:
    done = tape("20260101T000000Z-done")
    writer = TapeWriter(Path(".tapes") / "20260102T000000Z-live.tape.jsonl.gz", agentruns.HEAD)
    assert [row["outcome"] for row in json.loads(ls("--json").output)["tapes"]] == ["exit 3", "recording"]
    assert do_prune("--keep", "0", "--yes").splitlines()[0] == str(done)
    assert writer.path.exists()
    writer.seal(trace="", outcome="stopped")
    assert [row["outcome"] for row in json.loads(ls("--json").output)["tapes"]] == ["stopped"]


def test_a_hostile_command_is_shown_as_text() -> None:
    tape("x", head=Head(argv=("\x1b[2J\u202e\n", "\udcff")))
    output = ls().output
    assert "\\x1b[2J\\u202e\\n" in output
    assert not set(output) & set("\x1b\u202e\udcff")
    assert json.loads(ls("--json").output)["tapes"][0]["argv"][0] == "\x1b[2J\u202e\n"


def do_prune(*args: str, answer: str | None = None) -> str:
    result = CliRunner().invoke(prune, args, input=answer, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_what_a_killed_recorder_left_goes_with_its_tape() -> None:
    mine, other = "ab" * 32, "cd" * 32
    path = tape("20260101T000000Z-killed", head=Head(started_at="2026-01-01T00:00:00Z", seed=mine))
    (make_folder(path, mine) / "1-1.jsonl").touch()
    kept = make_folder(path, other)
    do_prune("--keep", "0", "--yes")
    assert [*Path(".tapes").iterdir()] == [kept]


def fill(count: int) -> None:
    """Tapes a, b, c …, a day old, two days, three …"""
    for n in range(count):
        tape(chr(ord("a") + n), days=n + 1)


@pytest.mark.parametrize(
    ("args", "left"),
    [
        (("--keep", "2"), "ab"),
        (("--keep", "0"), ""),
        (("--keep", "9"), "abcd"),
        ((), "abcd"),
        (("--older-than", "2.5"), "ab"),
        (("--older-than", "9"), "abcd"),
        (("--older-than", "2.5", "--keep", "3"), "abc"),
        (("--older-than", "3.5", "--keep", "1"), "abc"),
    ],
)
def test_which_tapes_go(args: tuple[str, ...], left: str) -> None:
    fill(4)
    do_prune(*args, "--yes")
    assert names() == list(left)


def test_twenty_stay_unless_told_otherwise() -> None:
    fill(22)
    output = do_prune("--yes")
    assert output.splitlines()[:2] == [".tapes/v.tape.jsonl.gz", ".tapes/u.tape.jsonl.gz"]
    assert output.splitlines()[2].startswith("deleted 2 tapes (")
    assert len(names()) == 20


def test_a_dry_run_only_tells() -> None:
    fill(2)
    output = do_prune("--keep", "1", "-n")
    assert output.splitlines()[0] == ".tapes/b.tape.jsonl.gz"
    assert output.splitlines()[1].startswith("would delete 1 tape (")
    assert names() == ["a", "b"]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_it_asks_and_takes_no_for_an_answer(answer: str) -> None:
    fill(2)
    with pytest.raises(Abort):
        do_prune("--keep", "1", answer=answer)
    assert names() == ["a", "b"]


def test_it_asks_and_takes_yes_for_an_answer() -> None:
    fill(2)
    do_prune("--keep", "1", answer="y\n")
    assert names() == ["a"]


def test_what_is_no_tape_is_never_touched(folder: Path, tmp_path: Path) -> None:
    tape("tape", days=3)
    (folder / "log.jsonl.gz").write_bytes(gzip.compress(b'{"k":"log"}\n'))
    (folder / "notes.txt").write_text("mine")
    (folder / "empty.tape.jsonl.gz").write_bytes(b"")
    (folder / "folder.tape.jsonl.gz").mkdir()
    elsewhere = agentruns.write_tape(tmp_path / "elsewhere" / "far.tape.jsonl.gz", [])
    (folder / "link.tape.jsonl.gz").symlink_to(elsewhere)
    do_prune("--keep", "0", "--yes")
    assert names() == ["empty", "folder", "link", "log", "notes"]
    assert elsewhere.exists()


def test_a_damaged_tape_is_still_a_tape(folder: Path) -> None:
    path = tape("tape")
    path.write_bytes(path.read_bytes()[:500])
    do_prune("--keep", "0", "--yes")
    assert list(folder.iterdir()) == []


def test_nothing_to_delete() -> None:
    assert do_prune("--yes") == "nothing to delete\n"
