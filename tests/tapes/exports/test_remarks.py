from agentruns import exchange
from difftapes import read

from tapeproxy.tapes.exports.remarks import beside, counted, last_moment, remark
from tapeproxy.tapes.records import Chunks, End, Lane, Record, Request, Value


def test_what_a_tape_holds_beside_exchanges() -> None:
    records: list[Record] = [Lane(t=0, id="m"), Lane(t=0, id="m/t0"), Value(t=1, lane="m", n=0, what="file", name="x")]
    assert list(beside(read(records), uploads=2)) == [
        "2 request bodies sent in pieces: in the file in one",
        "left out: 1 value that the agent had from files, programs, tools or messages",
        "which of 2 lanes asked what is told for people only: an import has no lanes",
    ]
    assert list(beside(read(exchange(1, "https://h.test/")))) == []


def test_counts() -> None:
    assert [counted(1, "value"), counted(2, "value"), counted(2, "body", "bodies")] == [
        "1 value",
        "2 values",
        "2 bodies",
    ]


def test_when_an_exchange_ended_and_how() -> None:
    records = [
        Request(t=5, method=b"GET", url=b"http://127.0.0.1:1/", inside=True),
        Chunks(t=9, of=1, parts=((0, b"a"), (None, b"b"))),
    ]
    (one,) = read(records).exchanges
    assert last_moment(one) == 9
    assert remark(one) == "unfinished: the tape ends before it; with a server of the run itself"
    (ended,) = read([*records, End(t=20, of=1, how="reset", error="\udcff")]).exchanges
    assert last_moment(ended) == 20
    assert remark(ended) == "reset: \ufffd; with a server of the run itself"
