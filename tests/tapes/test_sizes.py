import pytest
from tapesamples import read, written

from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.records import Chunks, End, Head, Record, Request, Response, Value
from tapeproxy.tapes.sizes import Survey

LONG = b'"over and over", ' * 200


def exchange(of: int, body: bytes, answer: bytes, *, ended: bool = True) -> list[Record]:
    records: list[Record] = [
        Request(t=1, method=b"POST", url=b"https://x.example/", body=body),
        Response(t=2, of=of, status=200),
        Chunks(t=3, of=of, to="server", parts=((0, b"up"),)),
        Chunks(t=3, of=of, parts=((0, answer), (1, b"!"))),
    ]
    return [*records, End(t=4, of=of, how="complete")] if ended else records


def surveyed(records: list[Record], top: int = 10) -> Survey:
    survey = Survey(top)
    for entry in read(written(records, Head(started_at="x", must=("like",), window=WINDOW)))[0]:
        survey.feed(entry, entry.size / 2)
    return survey


def test_records_are_counted_by_kind_with_what_is_referred_to() -> None:
    value = Value(t=1, lane="m", n=0, what="file", name="a", content=b"12345")
    survey = surveyed([*exchange(1, LONG, b"yes"), *exchange(6, LONG + b"2", b"no"), value])
    kinds = {kind: (size.records, size.bodies, size.referred) for kind, size in survey.kinds.items()}
    assert kinds == {
        "head": (1, 0, 0),
        "request": (2, 2 * len(LONG) + 1, len(LONG)),
        "response": (2, 0, 0),
        "chunks": (4, 2 + 2 + 4 + 3, 0),
        "end": (2, 0, 0),
        "value": (1, 5, 0),
        "seal": (1, 0, 0),
    }
    total = survey.total()
    assert total.records == 13
    assert total.file == total.text / 2


def test_what_is_written_by_reference_is_in_the_bodies_and_not_in_the_text() -> None:
    survey = surveyed([*exchange(1, LONG, b""), *exchange(6, b"", b""), *exchange(11, LONG + b"new", b"")])
    request = survey.kinds["request"]
    assert (request.bodies, request.referred) == (2 * len(LONG) + 3, len(LONG))
    assert len(LONG) < request.text < 2 * len(LONG)
    assert survey.largest()[-1].size.referred in (0, len(LONG))
    (third,) = [one for one in survey.largest() if one.number == 3]
    assert (third.request, third.response, third.size.referred) == (len(LONG) + 5, 1, len(LONG))


@pytest.mark.parametrize("top", [0, 1, 2, 3, 9])
def test_the_largest_exchanges_come_first_also_those_without_an_end(top: int) -> None:
    records = [*exchange(1, b"a" * 500, b""), *exchange(6, b"", b"b" * 900, ended=False), *exchange(10, b"", b"")]
    largest = surveyed(records, top).largest()
    assert [one.number for one in largest] == [2, 1, 3][:top]
    assert [(one.url, one.size.records) for one in largest[:1]] == [(b"https://x.example/", 4)][:top]
