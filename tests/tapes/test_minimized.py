"""The records of a small tape: what was not asked for is gone, what is left refers to what it did."""

import dataclasses

import agentruns

from tapeproxy.tapes.course import Step
from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.minimized import minimized_records
from tapeproxy.tapes.neutraltapes import Key, NeutralTape, Source
from tapeproxy.tapes.records import Chunks, Exit, Note, Record, Request, Seal, Value
from tapeproxy.tapes.rewriting import encoded


def read(data: bytes) -> tuple[Tape, list[Record]]:
    decoder = TapeDecoder("t")
    entries = [*decoder.feed(data)]
    decoder.finish()
    return assemble(entries), [entry.record for entry in entries]


def run() -> tuple[Tape, list[Record]]:
    """Three exchanges with the world, the second with an upload, and one within the run between them."""
    records: list[Record] = []
    records += agentruns.exchange(1, "http://x.test/1", chunks=[b'{"a": ', b'"one"}'], lane="m")
    records += agentruns.exchange(len(records) + 1, "http://x.test/2", chunks=[b'{"a": "two"}'], lane="m")
    records.insert(-2, Chunks(t=records[-2].t, of=6, to="server", parts=((0, b"up"),)))  # type: ignore[attr-defined]
    inside = agentruns.exchange(len(records) + 1, "http://127.0.0.1:9/in", chunks=[b'{"a": "in"}'], lane="m")
    assert isinstance(inside[0], Request)
    records += [dataclasses.replace(inside[0], inside=True), *inside[1:]]
    records.append(Value(t=9, lane="m", n=0, what="file", name="f", content=b'{"b": 7}', length=8, digest="00"))
    records += agentruns.exchange(len(records) + 1, "http://x.test/3", chunks=[b'{"a": "three"}'], lane="m")
    records += [Note(t=9, what="w"), Exit(t=9, code=0)]
    return read(agentruns.tape_bytes(records))


def step(number: int, url: str, n: int) -> Step:
    return Step(number, LaneTag("m", n, 5 + n), Ask(b"POST", url.encode(), ((b"x", b"y"),), b"now"))


def small(numbers: tuple[int, ...], *kept: Key) -> Tape:
    tape, records = run()
    served = NeutralTape(tape, reads=True).keeping(frozenset(kept))
    steps = [step(number, f"http://x.test/{number}", n) for n, number in enumerate(numbers)]
    made = list(minimized_records(records, tape.head, served, steps, Exit(t=10, code=3)))
    seal = Seal(t=11, records=0, trace="", outcome="exited", file="", lanes={"m": ""})
    again, _ = read(b"".join(encoded(made, seal)))
    return again


def test_what_was_asked_for_is_there_as_it_was_asked() -> None:
    tape = small((1, 4), Key(Source("exchange", 4), "$.a"))
    first, inside, last = tape.exchanges
    assert (first.request.url, first.request.method, first.request_body) == (b"http://x.test/1", b"POST", b"now")
    assert (first.request.n, first.request.reads, last.request.n, last.request.reads) == (0, 5, 1, 6)
    assert (first.response_body, last.response_body) == (b'{"a":""}', b'{"a": "three"}')
    assert inside.request.inside
    assert inside.response_body == b'{"a": "in"}', "what a server of the run said is no value"
    assert all(exchange.end is not None for exchange in tape.exchanges)
    assert tape.exit is not None
    assert tape.exit.code == 3
    assert [note.what for note in tape.notes] == ["w"]
    assert tape.seal is not None
    assert tape.seal.lanes.keys() == {"m"}


def test_uploads_are_in_the_request_and_reads_have_their_content() -> None:
    tape = small((1, 2, 4), *(Key(Source("exchange", number), "$.a") for number in (1, 2, 4)))
    assert tape.exchanges[1].uploads == []
    assert tape.exchanges[1].request_body == b"now"
    ((_, value),) = tape.values
    assert (value.content, value.length) == (b'{"b":0}', 7)
    assert value.digest not in (None, "00")


def test_a_read_that_counts_stays() -> None:
    tape, _ = run()
    ((index, before),) = tape.values
    ((_, value),) = small((1,), Key(Source("read", index), "$.b")).values
    assert value == before
