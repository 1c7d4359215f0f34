"""`show --rank`, `--vector` and `--lane`: exchanges in causal order."""

import json
from pathlib import Path

import agentruns
import pytest
from click.testing import CliRunner

from tapeproxy.cli.show import command
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Edge, End, Head, Lane, Record, Request

HEAD = Head(started_at="2026-01-02T03:04:05Z", argv=("agent",), rules={"edges": 1})


def exchange(index: int, lane: str, n: int) -> list[Record]:
    request = Request(t=index, method=b"GET", url=b"http://x.test/%d" % index, lane=lane, n=n)
    return [request, End(t=index, of=index, how="connect-error")]


@pytest.fixture
def tape(tmp_path: Path) -> str:
    """bob asks before alice, who was started first; main asks after both."""
    names = [
        Lane(t=0, id="m/t0", name="alice", origin=("m", 1, 0)),
        Lane(t=0, id="m/t1", name="bob\x1b", origin=("m", 1, 0)),
    ]
    edges = [Edge(t=0, what="join", on=f"m/t{n}", lane="m", n=n, asked=1, at=(1, 0)) for n in range(2)]
    records: list[Record] = [*exchange(1, "m", 0), *names, *exchange(5, "m/t1", 0), *exchange(7, "m/t0", 0)]
    records += [*edges, *exchange(11, "m", 1)]
    return str(agentruns.write_tape(tmp_path / "t.tape.jsonl.gz", records, HEAD))


def show(*args: str) -> str:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def rows(*args: str) -> list[list[str]]:
    lines = show(*args).splitlines()
    return [line.split() for line in lines[4 : lines.index("", 4)]]


def test_exchanges_stand_in_causal_order_with_what_they_knew(tape: str) -> None:
    found = rows(tape, "--rank", "--vector")
    assert found[0][:4] == ["#", "lane", "rank", "knows"]
    assert [row[: row.index("GET")] for row in found[1:]] == [
        ["1", "m", "1", "m:1"],
        ["3", "alice", "(m/t0)", "3", "m:2", "m/t0:1"],
        ["2", "bob\\x1b", "(m/t1)", "3", "m:2", "m/t1:1"],
        ["4", "m", "7", "m:3", "m/t0:2", "m/t1:2"],
    ]


@pytest.mark.parametrize("lane", ["m/t0", "alice", "alice (m/t0)"])
def test_one_lane_by_its_id_or_name(lane: str, tape: str) -> None:
    assert [row[0] for row in rows(tape, "--lane", lane)[1:]] == ["3"]


def test_json_has_ranks_clocks_and_names(tape: str) -> None:
    found = json.loads(show(tape, "--vector", "--json"))
    assert [(row["number"], row["rank"]) for row in found["exchanges"]] == [(1, 1), (3, 3), (2, 3), (4, 7)]
    assert found["exchanges"][3]["clock"] == {"m": 3, "m/t0": 2, "m/t1": 2}
    assert found["lanes"][0] == {"id": "m/t0", "name": "alice", "what": ""}


def test_a_lane_that_is_not_there_and_an_exchange_are_errors(tape: str) -> None:
    with pytest.raises(UsageError, match="asked nothing") as failed:
        show(tape, "--lane", "carol")
    assert "alice (m/t0)" in str(failed.value.fix)
    with pytest.raises(UsageError, match="whole tape"):
        show(tape, "1", "--rank")
