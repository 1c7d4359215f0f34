"""docs/FORMAT.md is right: its tables are the schema, its example is a tape, its reader reads it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from blake3 import blake3
from tapesamples import RECORDS, read, written

from tapeproxy.proxy.encrypting import encrypt
from tapeproxy.proxy.signing import is_true
from tapeproxy.proxy.unlocking import Secret
from tapeproxy.tapes import encrypted, parsing
from tapeproxy.tapes.bodies import FORMS, FREE_EXPANSION, MAX_BODY, MAX_DEPTH, MAX_EXPANSION
from tapeproxy.tapes.chain import MAX_LINE
from tapeproxy.tapes.decoder import FEATURES, Limits
from tapeproxy.tapes.gzipping import HEADER
from tapeproxy.tapes.likes import LEAST_SHARED, WINDOW
from tapeproxy.tapes.records import Framing, Head, How, Request, Side
from tapeproxy.tapes.signature import Statement, parse
from tapeproxy.tapes.wsrecords import FrameType, Open

GOLDEN = Path(__file__).parent / "golden"
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


@pytest.mark.parametrize(("field", "words"), [("type", FrameType), ("open", Open)])
def test_the_words_of_a_websocket_are_those_of_the_code(field: str, words: object) -> None:
    (row,) = re.findall(rf"^\| `{field}` \| word.*? \| \w+ \| (.*) \|", section("### `ws`"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) - {"data"} == set(get_args(getattr(words, "__value__", words)))


def test_the_limits_are_those_of_the_code() -> None:
    table = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", section("## Limits"), re.MULTILINE))
    limits = Limits()
    assert table["a line"] == f"{MAX_LINE >> 20} MiB" == f"{limits.line >> 20} MiB"
    assert table[f"text against file, after the first {limits.free >> 20} MiB of text"] == f"{limits.ratio} to 1"
    assert table["gzip members"].replace(" ", "") == str(limits.members)
    assert table["nesting in free-form fields"] == str(parsing.MAX_NESTING)
    assert table["references through references"] == f"{MAX_DEPTH} records"
    past = f"past the first {FREE_EXPANSION >> 30} GiB, {MAX_EXPANSION} times the bytes of the file up to there"
    assert table["all bodies built from references, together"] == f"{limits.bodies >> 30} GiB; {past}"
    assert table["bodies of one record built from references"] == f"{MAX_BODY >> 20} MiB"


def test_the_features_and_the_header_are_those_of_the_code() -> None:
    assert FEATURES == FORMS == set(re.findall(r"Version 1 knows `(\w+)` and `(\w+)`", TEXT)[0])
    assert f"`{HEADER.hex(' ')}`" in TEXT
    assert f"a window of {WINDOW >> 20} MiB" in TEXT
    assert f"shares {LEAST_SHARED >> 10} KiB or more" in TEXT


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
    assert run_reader(path).stdout.split() == ["0", "head", "1", "request", "2", "response", "3", "chunks"]
    path.write_bytes(written(head=Head(started_at="x", must=("like", "ref", "time-travel"))))
    done = run_reader(path)
    assert done.returncode == 1
    assert "the tape needs a newer reader than this" in done.stderr
    path.write_bytes(MEMBERS[0][:-40])
    kept = len(read(MEMBERS[0][:-40])[0])
    assert 0 < kept < len(LINES) - 1
    done = run_reader(path)
    assert (done.stderr, done.stdout) == ("", "".join(block("output").splitlines(keepends=True)[:kept]))


# --- signatures and encrypted tapes ---


def test_the_signature_is_of_the_example_and_as_it_is_described() -> None:
    line = block("json signature").encode()
    signature = parse(line, "s")
    assert is_true(signature)
    said, ending = signature.statement, read(EXAMPLE)[1]
    assert (said.file, said.last, said.records) == (ending.file, ending.hash, len(LINES))
    assert said.head.encode() == LINES[0][-67:-3]
    content = line[:-145]
    assert line[len(content) :].startswith(b',"signature":"')
    assert "its last 144 bytes" in TEXT
    assert "the 27 bytes `tapeproxy tape signature 1\\n`" in TEXT
    assert signature.message == b"tapeproxy tape signature 1\n" + content
    fields = re.findall(r"^\| `(\w+)` \| (?:natural|text) \|", section("## Signatures"), re.MULTILINE)
    assert fields == ["tape_signature", *Statement.__slots__]


def test_the_independent_decrypter_reads_the_example_and_a_tape(tmp_path: Path) -> None:
    path, key = tmp_path / "t", tmp_path / "k"
    key.write_bytes(bytes(range(32)))
    large = bytes(2 * encrypted.CHUNK)
    secret = Secret("key", key.read_bytes())
    for data, plain in (
        (bytes.fromhex(block("hex encrypted")), b"tape\n"),
        (b"".join(encrypt(iter([EXAMPLE]), secret)), EXAMPLE),
        (b"".join(encrypt(iter([large]), secret)), large),
    ):
        path.write_bytes(data)
        argv = [sys.executable, "-c", block("python decrypter"), str(path), str(key)]
        done = subprocess.run(argv, capture_output=True, timeout=60)
        assert (done.stderr, done.stdout) == (b"", plain)


def test_the_numbers_of_the_container_are_those_of_the_code() -> None:
    text = section("## Encrypted tapes")
    assert f"`{encrypted.MAGIC.hex(' ')}`" in text
    assert f"{encrypted.COSTS.start} to {encrypted.COSTS.stop - 1}; 0 for a key" in text
    assert f"A writer takes {encrypted.COST}." in text
    last = encrypted.COSTS.stop - 1
    assert f"{last} takes {128 * encrypted.R << last >> 20} MiB" in text
    assert f"r = {encrypted.R}, p = {encrypted.P}" in text
    assert f"{encrypted.CHUNK:,}".replace(",", " ") in text
    rows = [(int(at), int(size)) for at, size in re.findall(r"^\| (\d+) \| (\d+) \|", text, re.MULTILINE)]
    assert [at for at, _ in rows[1:]] == [at + size for at, size in rows[:-1]]
    assert sum(rows[-1]) == encrypted.SIZE


def test_the_independent_reader_resolves_references_as_the_code_does(tmp_path: Path) -> None:
    path = tmp_path / "a.tape.jsonl.gz"
    long = b"[" + b'"over and over",' * 200
    turns = tuple(Request(t=1, method=b"POST", url=b"u", body=long + b"%d]" % turn) for turn in range(3))
    windowed = Head(started_at="x", must=("like",), window=WINDOW)
    reader: dict[str, Any] = {"__name__": "reader"}
    exec(block("python reader").rpartition("\nfor record in read")[0], reader)
    for data in (written(), written(turns, windowed), (GOLDEN / "v1.tape.jsonl.gz").read_bytes()):
        path.write_bytes(data)
        bodies = [record["body"] for record in reader["read"](path) if record["k"] == "request"]
        records = [entry.record for entry in read(data)[0]]
        assert bodies == [record.body for record in records if isinstance(record, Request)]
