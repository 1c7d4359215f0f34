"""What of an old tape nobody asked for, behind the records of a new one."""

from pathlib import Path

import agentruns
import pytest

from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.appending import with_leftovers
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Clock, Head, Record, Request, Seal
from tapeproxy.tapes.rewriting import encoded


def tape(folder: Path, name: str, *paths: str) -> Path:
    records: list[Record] = [Clock(t=1, lane="m", n=0, ns=5)]
    for path in paths:
        more = agentruns.exchange(len(records) + 1, f"https://api.test{path}", chunks=[path.encode(), b"!"])
        records += more
    return agentruns.write_tape(folder / name, records)


def facts(exchange: Exchange) -> tuple[object, ...]:
    answer, end = exchange.response, exchange.end
    assert answer is not None
    assert end is not None
    return exchange.request.url, answer.headers, exchange.response_body, len(exchange.chunks), end.how


@pytest.mark.parametrize("kept", [(), (1,), (2, 3), (1, 2, 3)])
def test_they_are_as_they_were_but_for_lanes_and_times(tmp_path: Path, kept: tuple[int, ...]) -> None:
    old, new = tape(tmp_path, "old.gz", "/a", "/b", "/c"), tape(tmp_path, "new.gz", "/x", "/b")
    was = load(old)[0].exchanges
    records = [entry.record for entry in read_entries(new)]
    seal = records.pop()
    assert isinstance(seal, Seal)
    indexes = {one.index for one in was if one.number in kept}
    whole = list(with_leftovers(records, (entry.record for entry in read_entries(old)), indexes))
    assert whole[: len(records)] == records
    (tmp_path / "both.gz").write_bytes(b"".join(encoded(whole, seal)))
    found, ending = load(tmp_path / "both.gz")
    assert ending.sealed
    assert ending.canonical
    before = [*load(new)[0].exchanges, *(was[number - 1] for number in kept)]
    assert list(map(facts, found.exchanges)) == list(map(facts, before))
    late = [one.request for one in found.exchanges[2:]]
    assert all((asked.lane, asked.n, asked.reads) == (None, None, None) for asked in late)
    times = [record.t for record in whole if isinstance(record, Request)]
    assert times == sorted(times)
    assert len([record for record in whole if isinstance(record, Head | Clock)]) == 2
