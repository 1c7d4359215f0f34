"""From the shim's lines to records without secrets, from records to the files that a replay's shim reads, and back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tapeproxy.proxy.iovalues import ValueCheck, ValueReader, write_values
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Head, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Drift

SECRET = "sk-proj-AbCdEf0123456789"
REDACTOR = Redactor(bytes(range(32)), [SECRET])
SEED = "5eed" * 16


def line(name: str = "a", n: int = 0, **fields: Any) -> dict[str, Any]:
    return {"k": "value", "lane": "m", "n": n, "what": "file", "name": name, "where": "x.py:1 in f"} | fields


def reader() -> ValueReader:
    return ValueReader(REDACTOR, bytes.fromhex(SEED))


def test_a_line_becomes_a_record() -> None:
    record = reader().read(line(content="text", length=4, digest="d1", taped=3), 9)
    assert record == Value(
        t=9, lane="m", n=0, what="file", name="a", where="x.py:1 in f", content=b"text", length=4, digest="d1"
    )


@pytest.mark.parametrize("wrong", [{"n": "1"}, {"lane": None}, {"content": 7}, {"content": {"ref": 1}}, {"length": -1}])
def test_a_malformed_line_is_none(wrong: dict[str, Any]) -> None:
    assert reader().read(line(**wrong), 0) is None


def test_secrets_go_from_content_name_and_data_and_digests_follow() -> None:
    read = reader()
    first = read.read(line(f"dir-{SECRET}", content=f"key {SECRET}", length=28, digest="d1", data={"x": SECRET}), 0)
    again = read.read(line(n=1, length=28, digest="d1"), 0)
    assert first is not None
    assert again is not None
    assert SECRET not in json.dumps(first.to_json())
    assert first.digest != "d1"
    assert again.digest == first.digest
    program = read.read(line(f"curl -H 'Authorization: Bearer {SECRET}'", what="process"), 0)
    assert program is not None
    assert SECRET not in program.name


def tape(*values: Value) -> Tape:
    return Tape(Head(seed=SEED, io=True), values=list(enumerate(values, 1)))


def taped(content: bytes, n: int = 0, name: str = "a", what: str = "file", **fields: Any) -> Value:
    digest = content.hex()[:32]
    return Value(
        t=0, lane="m", n=n, what=what, name=name, content=content, length=len(content), digest=digest, **fields
    )


def test_what_a_replay_reads_is_compared_once_a_name() -> None:
    found: list[Drift] = []
    check = ValueCheck(tape(taped(b"one"), taped(b"two", 1)), REDACTOR, found.append)
    check.take(line(content="one", length=3, digest="d1"))
    assert found == []
    check.take(line(n=1, content="TWO", length=3, digest="d2"))
    check.take(line(n=2, length=3, digest="d2"))
    (drift,) = found
    assert drift.request == "file a in lane m at x.py:1 in f"
    assert [(d.taped, d.asked) for d in drift.differences] == [("two", "TWO")]
    check.take(line("other", n=3, content="", length=0, digest="d3"))
    assert "did not read while recording" in found[1].what


def test_a_served_replay_is_compared_by_number_where_it_read_the_world() -> None:
    found: list[Drift] = []
    check = ValueCheck(tape(taped(b"one"), taped(b"two", 1)), REDACTOR, found.append)
    check.take(line(content="two", length=3, digest="d1", taped=1))
    assert found == []
    check.take(line("b", content="x", length=1, digest="d2", taped=None))
    assert len(found) == 1


def test_output_is_compared_when_all_has_come() -> None:
    found: list[Drift] = []
    began = Value(t=0, lane="m", n=0, what="process", name="date", data={"lane": "m/p0"})
    check = ValueCheck(tape(began, taped(b"1\n", 1, "stdout", "pipe", data={"of": 0})), REDACTOR, found.append)
    check.take(line("date", what="process"))
    check.take(line("stdout", 1, what="pipe", content="2\n", length=2, digest="d", data={"of": 0}))
    assert found == []
    check.finish()
    assert [drift.request for drift in found] == ["stdout of process date in lane m at x.py:1 in f"]


def test_the_files_for_the_shim_hold_each_content_once(tmp_path: Path) -> None:
    values = (
        taped(b"same"),
        taped(b"same", 1, "b\udcff"),
        Value(t=0, lane="m", n=2, what="process", name="p", data={"lane": "m/p0"}),
        taped(b"out", 3, "stdout", "pipe", data={"of": 2}),
        Value(t=0, lane="m", n=4, what="exit", name="p", data={"of": 2, "returncode": 3, "stdin": {"length": 7}}),
    )
    write_values(tape(*values), tmp_path / "v")
    lines = [json.loads(text) for text in (tmp_path / "v" / "index.jsonl").read_text().splitlines()]
    contents = (tmp_path / "v" / "contents").read_bytes()
    assert contents == b"sameout"
    assert [(item["name"], item.get("at"), item.get("size")) for item in lines[:2]] == [("a", 0, 4), ("b\udcff", 0, 4)]
    assert "content" not in lines[0]
    assert lines[2]["served"] == {
        "live": False,
        "out": [4, 3],
        "err": lines[2]["served"]["err"],
        "returncode": 3,
        "signalled": False,
        "stdin": 7,
        "exit": 4,
    }
