from collections.abc import Sequence

import pytest

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.exchanges import Chunk, assemble
from tapeproxy.tapes.records import Chunks, Done, End, Exit, Head, Note, Record, Request, Response, Seal, Unknown

HEAD = Head(started_at="2026-01-01T00:00:00Z")
A = Request(t=1, method=b"GET", url=b"http://x/a", body=b"ask ")
B = Request(t=2, method=b"GET", url=b"http://x/b")
SEAL = Seal(t=9, records=9, trace="", outcome="exit")


def entries(records: Sequence[Record]) -> list[Entry]:
    return [Entry(index, bytes(32), 0, record) for index, record in enumerate(records)]


def test_interleaved_exchanges_are_sorted_out() -> None:
    tape = assemble(
        entries(
            [
                HEAD,
                A,
                B,
                Response(t=3, of=2, status=200),
                Chunks(t=4, of=1, to="server", parts=((0, b"more"),)),
                Response(t=5, of=1, status=404),
                Chunks(t=10, of=1, parts=((0, b"no"), (5, b"pe"))),
                Chunks(t=11, of=2, parts=((None, b"yes"),)),
                End(t=12, of=2, how="complete"),
                Unknown(kind="crash"),
                Note(t=13, what="x"),
                End(t=14, of=1, how="reset"),
            ]
        )
    )
    first, second = tape.exchanges
    assert (first.number, first.index, second.number, second.index) == (1, 1, 2, 2)
    assert first.request_body == b"ask more"
    assert first.chunks == [Chunk(10, b"no"), Chunk(15, b"pe")]
    assert first.response_body == b"nope"
    assert second.chunks == [Chunk(None, b"yes")]
    assert (first.response, second.response) == (Response(t=5, of=1, status=404), Response(t=3, of=2, status=200))
    assert (first.end, second.end) == (End(t=14, of=1, how="reset"), End(t=12, of=2, how="complete"))
    assert tape.notes == [Note(t=13, what="x")]
    assert (tape.head, tape.exit, tape.seal) == (HEAD, None, None)
    assert tape.duration == 14


def test_exit_and_seal_are_kept_and_exit_says_how_long_it_took() -> None:
    tape = assemble(entries([HEAD, Exit(t=8, code=1, duration=7), SEAL]))
    assert tape.exit == Exit(t=8, code=1, duration=7)
    assert tape.seal == SEAL
    assert tape.duration == 7


def test_a_killed_recording_has_what_came() -> None:
    tape = assemble(entries([HEAD, A, Response(t=3, of=1, status=200), Chunks(t=4, of=1, parts=((0, b"x"),))]))
    (exchange,) = tape.exchanges
    assert (exchange.end, exchange.response_body) == (None, b"x")
    assert assemble(entries([HEAD])).duration == 0


END = End(t=1, of=1, how="complete")
RESPONSE = Response(t=1, of=1, status=200)


@pytest.mark.parametrize(
    ("records", "line", "what"),
    [
        ([HEAD, Response(t=1, of=2, status=200), A], 2, "'response' record answers record 2, which is not an earlier"),
        ([HEAD, A, Chunks(t=1, of=0)], 3, "'chunks' record answers record 0, which is not an earlier request"),
        ([HEAD, A, RESPONSE, End(t=1, of=2, how="reset")], 4, "'end' record answers record 2"),
        ([HEAD, A, RESPONSE, RESPONSE], 4, "a second response to record 1"),
        ([HEAD, A, END, END], 4, "'end' record comes after the end of the exchange of record 1"),
        ([HEAD, A, END, RESPONSE], 4, "'response' record comes after the end"),
        ([HEAD, A, RESPONSE, END, Chunks(t=1, of=1)], 5, "'chunks' record comes after the end"),
        ([], 1, "the tape has no head"),
        ([A], 1, "the tape has no head"),
    ],
)
def test_a_record_that_belongs_nowhere_is_an_error_with_its_line(records: list[Record], line: int, what: str) -> None:
    with pytest.raises(TapeFormatError, match=what) as caught:
        assemble(entries(records), "x.tape")
    assert (caught.value.place.source, caught.value.place.line) == ("x.tape", line)


def test_a_task_that_completes_knows_how_many_requests_came_before_it() -> None:
    done = Done(t=1, lane="m/a0", parent="m")
    tape = assemble(entries([HEAD, done, A, done, End(t=3, of=2, how="reset"), done]))
    assert [before for _, before in tape.dones] == [0, 1, 1]
