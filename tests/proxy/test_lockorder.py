"""When a replay keeps the order of locks, and what the shim is told of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from served import tape_of

from tapeproxy.proxy.lockorder import keeps_order, write_order
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Edge


@pytest.mark.parametrize(
    ("taped", "wanted", "kept"),
    [(True, None, True), (True, True, True), (True, False, False), (False, None, False), (False, False, False)],
)
def test_the_tape_s_order_is_kept_unless_told_otherwise(taped: bool, wanted: bool | None, kept: bool) -> None:
    tape = tape_of([])
    tape.head = replace(tape.head, threads=taped)
    assert keeps_order(tape, wanted, Path("t")) is kept


def test_an_order_that_is_not_taped_cannot_be_kept() -> None:
    with pytest.raises(UsageError, match="no order of locks"):
        keeps_order(tape_of([]), True, Path("t"))


def test_the_order_is_written_for_this_user_alone(tmp_path: Path) -> None:
    tape = tape_of([])
    tape.edges += [
        Edge(t=1, what="acquired", on="m#a:0", lane="m/t0", n=0),
        Edge(t=2, what="refused", on="x", lane="m", n=7),
    ]
    write_order(tape, tmp_path / "locks")
    assert [json.loads(line) for line in (tmp_path / "locks").read_text().splitlines()] == [
        {"on": "m#a:0", "what": "acquired", "lane": "m/t0", "n": 0},
        {"on": "x", "what": "refused", "lane": "m", "n": 7},
    ]
    assert (tmp_path / "locks").stat().st_mode & 0o077 == 0
