"""docs/FORMAT.md is right: its tables are the schema, its example is a tape, its reader reads it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from blake3 import blake3
from tapesamples import RECORDS, read, written

from tapeproxy.tapes import parsing
from tapeproxy.tapes.bodies import FORMS, MAX_DEPTH
from tapeproxy.tapes.chain import MAX_LINE
from tapeproxy.tapes.decoder import FEATURES, Limits
from tapeproxy.tapes.gzipping import HEADER
from tapeproxy.tapes.records import Framing, How, Side

TEXT = (Path(__file__).parents[1] / "docs" / "FORMAT.md").read_text(encoding="utf-8")


def block(info: str) -> str:
    (found,) = re.findall(rf"^```{info}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return found


MEMBERS = [bytes.fromhex(block(f"hex {name}")) for name in ("records", "seal")]
EXAMPLE = b"".join(MEMBERS)
LINES = block("json text").encode().splitlines(keepends=True)


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    return re.split(r"^#+ ", TEXT.split(f"\n{title}\n")[1], flags=re.MULTILINE)[0]


@pytest.mark.parametrize("kind", parsing._KINDS)
def test_the_fields_of_each_kind_are_those_of_the_code(kind: str) -> None:
    fields: dict[str, bool] = {}
    for names, _type, required in re.findall(
        r"^\| (`.*?) \| (.*?) \| (yes|no) \|", section(f"### `{kind}`"), re.MULTILINE
    ):
        fields |= dict.fromkeys(re.findall(r"`(\w+)`", names), required == "yes")
    assert fields == {name: required for name, _, _, required in parsing._KINDS[kind][1]}


@pytest.mark.parametrize(("kind", "words"), [("response", Framing), ("chunks", Side), ("end", How)])
def test_the_words_are_those_of_the_code(kind: str, words: object) -> None:
    (row,) = re.findall(r"^\| `\w+` \| word \| yes \| (.*) \|", section(f"### `{kind}`"), re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", row)) - {"body"} == set(get_args(getattr(words, "__value__", words)))


def test_the_limits_are_those_of_the_code() -> None:
    table = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", section("## Limits"), re.MULTILINE))
    limits = Limits()
    assert table["a line"] == f"{MAX_LINE >> 20} MiB" == f"{limits.line >> 20} MiB"
    assert table[f"text against file, after the first {limits.free >> 20} MiB of text"] == f"{limits.ratio} to 1"
    assert table["gzip members"].replace(" ", "") == str(limits.members)
    assert table["nesting in free-form fields"] == str(parsing.MAX_NESTING)
    assert table["references through references"] == f"{MAX_DEPTH} records"
    assert table["all bodies built from references, together"] == f"{limits.bodies >> 30} GiB"


def test_the_features_and_the_header_are_those_of_the_code() -> None:
    assert FEATURES == FORMS == set(re.findall(r"Version 1 knows `(\w+)` and `(\w+)`", TEXT)[0])
    assert f"`{HEADER.hex(' ')}`" in TEXT


def test_the_example_is_a_canonical_tape_with_these_lines_and_hashes() -> None:
    entries, ending = read(EXAMPLE)
    assert ending.canonical
    assert [entry.size for entry in entries] == [len(line) for line in LINES]
    assert [entry.hash.hex().encode() for entry in entries] == [line[-67:-3] for line in LINES]
    last = bytes(32)
    for line in LINES:
        last = blake3(last + line[:-73]).digest()
        assert line.endswith(b',"h":"' + last.hex().encode() + b'"}\n')
    assert f'"file":"{blake3(MEMBERS[0]).hexdigest()}"'.encode() in LINES[-1]
    assert MEMBERS[0].count(bytes.fromhex("0000ffff")) == len(LINES) - 1
    assert "A tape of seven lines" in TEXT
    assert len(LINES) == 7


def run_reader(path: Path) -> subprocess.CompletedProcess[str]:
    code = block("python reader")
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)


def test_the_independent_reader_reads_the_example(tmp_path: Path) -> None:
    path = tmp_path / "example.tape.jsonl.gz"
    path.write_bytes(EXAMPLE)
    done = run_reader(path)
    assert (done.stderr, done.stdout) == ("", block("output"))


def test_the_independent_reader_agrees_on_another_tape_cut_and_changed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = written(RECORDS[:4], seal=False)
    path.write_bytes(data[:-9])
    done = run_reader(path)
    assert done.returncode == 1  # it knows no references, and says so
    assert "line 1 is not for this reader" in done.stderr
    path.write_bytes(MEMBERS[0][:-40])
    kept = len(read(MEMBERS[0][:-40])[0])
    assert 0 < kept < len(LINES) - 1
    done = run_reader(path)
    assert (done.stderr, done.stdout) == ("", "".join(block("output").splitlines(keepends=True)[:kept]))
