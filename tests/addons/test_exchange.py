"""One exchange's records: their order, that each is committed, and that nothing secret or empty is among them."""

import pytest
from recording import KEY

from tapeproxy.addons.exchange import TapedExchange
from tapeproxy.tapes.records import Chunks, End, Record, Request, Response
from tapeproxy.tapes.redaction import Redactor

SECRET = "sk-proj-AbCdEf0123456789xyzXYZ"


class MemoryTape:
    """A tape whose clock ticks once a call, and that tells what was committed from what was only added."""

    def __init__(self) -> None:
        self.added: list[Record] = []
        self.committed: list[Record] = []
        self._now = 0

    def now(self) -> int:
        self._now += 1
        return self._now

    def add(self, record: Record) -> int:
        self.added.append(record)
        return len(self.added)

    def commit(self) -> None:
        self.committed = list(self.added)


@pytest.fixture
def tape() -> MemoryTape:
    return MemoryTape()


def exchange_on(tape: MemoryTape) -> TapedExchange:
    return TapedExchange(tape, Redactor(KEY, [SECRET]), Request(t=0, method=b"GET", url=b"http://a/"))


def test_everything_is_committed_when_its_method_returns(tape: MemoryTape) -> None:
    exchange = exchange_on(tape)
    assert len(tape.committed) == 1
    exchange.respond(Response(t=1, of=exchange.of, status=200))
    exchange.take("client", b"one")
    assert tape.committed[-1] == Chunks(t=1, of=1, to="client", parts=((0, b"one"),))
    exchange.finish("client")
    exchange.end("complete", trailers=((b"A", b"b"),))
    assert tape.committed[-1] == End(t=2, of=1, how="complete", trailers=((b"A", b"b"),))
    assert len(tape.committed) == 4


def test_a_held_chunk_keeps_its_time_and_comes_with_the_next(tape: MemoryTape) -> None:
    exchange = exchange_on(tape)
    exchange.take("client", SECRET[:10].encode())
    assert len(tape.added) == 1
    exchange.take("client", SECRET[10:].encode())
    chunks = [record for record in tape.committed if isinstance(record, Chunks)]
    assert [chunk.t for chunk in chunks] == [1, 2]
    assert all(SECRET[:10].encode() not in data for chunk in chunks for _, data in chunk.parts)  # type: ignore[operator]  # bytes


def test_what_is_held_in_both_directions_comes_before_the_end(tape: MemoryTape) -> None:
    exchange = exchange_on(tape)
    exchange.take("server", b"up sk-proj-AbC")
    exchange.take("client", b"down sk-proj-AbC")
    exchange.end("reset", f"reset by {SECRET}")
    *chunks, end = tape.committed[1:]
    assert {record.to for record in chunks if isinstance(record, Chunks)} == {"server", "client"}
    assert isinstance(end, End) and end.error is not None and SECRET not in end.error


def test_a_big_body_goes_up_in_pieces_of_a_mebibyte(tape: MemoryTape) -> None:
    body = bytes(range(256)) * 10_000
    exchange_on(tape).upload_whole(body)
    parts = [data for record in tape.committed if isinstance(record, Chunks) for _, data in record.parts]
    assert [len(data) for data in parts if isinstance(data, bytes)] == [1 << 20, 1 << 20, len(body) - (2 << 20)]
    assert b"".join(data for data in parts if isinstance(data, bytes)) == body


def test_an_empty_chunk_is_never_written(tape: MemoryTape) -> None:
    exchange = exchange_on(tape)
    exchange.take("client", b"")
    assert len(tape.added) == 1


def test_what_comes_after_the_end_is_dropped(tape: MemoryTape) -> None:
    exchange = exchange_on(tape)
    exchange.take("server", b"early")
    exchange.end("complete")
    exchange.take("server", b"late")
    exchange.finish("server")
    assert isinstance(tape.added[-1], End) and tape.committed == tape.added
