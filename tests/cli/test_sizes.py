import json
from pathlib import Path
from typing import Any

import agentruns
import pytest
from click.testing import CliRunner

from tapeproxy.cli.show import command
from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.records import Record, Request


def show(*args: str) -> str:
    result = CliRunner().invoke(command, [*args, "--size"], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return agentruns.write_tape(tmp_path / "a.tape.jsonl.gz", agentruns.sample())


def test_kinds_and_the_largest_exchanges_as_tables(tape: Path) -> None:
    lines = show(str(tape), "--top", "2").splitlines()
    assert lines[0] == str(tape)
    assert " in the file, " in lines[1]
    assert lines[1].endswith(" of bodies")
    assert lines[3].split() == ["kind", "records", "file", "text", "bodies"]
    assert {line.split()[0] for line in lines[4 : lines.index("", 3)]} >= {"head", "request", "chunks", "seal"}
    at = lines.index("the largest 2 exchanges")
    assert lines[at + 1].split()[-3:] == ["request", "response", "what"]
    assert lines[at + 2].endswith("POST https://api.openai.com/v1/chat/completions")
    assert len(lines) == at + 4


def test_a_document_adds_up(tape: Path) -> None:
    document: dict[str, Any] = json.loads(show(str(tape), "--json"))
    assert document["total"]["file"] == tape.stat().st_size
    for field in ("records", "text", "bodies", "referred"):
        assert document["total"][field] == sum(kind[field] for kind in document["kinds"])
    assert [exchange["file"] for exchange in document["exchanges"]] == sorted(
        (exchange["file"] for exchange in document["exchanges"]), reverse=True
    )
    assert {exchange["number"] for exchange in document["exchanges"]} == {1, 2, 3, 4}
    assert json.loads(show(str(tape), "--json", "--top", "0"))["exchanges"] == []


def test_what_a_stranger_wrote_is_escaped(tmp_path: Path) -> None:
    records: list[Record] = [Request(t=1, method=b"\x1b[31m", url=b"http://x/\x9b", body=b"")]
    text = show(str(agentruns.write_tape(tmp_path / "a.tape.jsonl.gz", records)))
    assert "\\x1b[31m http://x/\\x9b" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("more", [("1",), ("1", "--raw"), ("--raw",)])
def test_it_is_about_a_whole_tape(tape: Path, more: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="--size is about a whole tape"):
        show(str(tape), *more)


def test_a_damaged_tape_says_where(tape: Path) -> None:
    data = bytearray(tape.read_bytes())
    data[len(data) // 2] ^= 1
    tape.write_bytes(data)
    with pytest.raises(TapeFormatError):
        show(str(tape))
