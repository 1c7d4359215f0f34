"""Repairing: every cut of a tape becomes a whole one that holds exactly what the cut one did."""

import gzip
import random
import zlib

import pytest
from tapesamples import HEAD, chained, read, read_what_can_be, written, zipped

from tapeproxy.tapes.chain import START
from tapeproxy.tapes.decoder import Ending, Entry
from tapeproxy.tapes.encoder import RESTART_EVERY, TapeEncoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.records import Clock, Lane, LaneEnd, Like, Note, Record, Request, Seal, Unknown
from tapeproxy.tapes.repairing import Kept, Losses, closing_note, plain_text, rewritten
from tapeproxy.tapes.trace import TraceHasher, trace_hash

URL = b"https://x.example/"


def kept_of(entries: list[Entry]) -> Kept:
    kept = Kept("t")
    for entry in entries:
        kept.see(entry)
    return kept


def repaired(data: bytes, added: tuple[Record, ...] = ()) -> bytes:
    entries, ending = read_what_can_be(data)
    kept = kept_of(entries)
    losses = Losses(
        bytes=ending.lost if isinstance(ending, Ending) else 0, damage="" if isinstance(ending, Ending) else "damage"
    )
    pieces = [data[at : at + 50] for at in range(0, len(data), 50)]
    return b"".join(rewritten(pieces, kept, [*added, closing_note(kept, losses, len(added))]))


def test_every_cut_becomes_a_whole_tape_of_what_was_there() -> None:
    whole = written()
    first = len(TapeEncoder(HEAD).flush())
    for length in range(first, len(whole)):
        before, ending = read_what_can_be(whole[:length])
        if isinstance(ending, Ending) and ending.sealed:
            continue
        entries, sealed = read(repaired(whole[:length]))
        assert sealed.canonical
        assert entries[: len(before)] == before, "every line is as it was, its hash too"
        note, seal = (entry.record for entry in entries[len(before) :])
        assert isinstance(note, Note)
        assert isinstance(seal, Seal)
        assert isinstance(ending, Ending)
        assert (note.data["kept"], note.data["lost_bytes"]) == (len(before), ending.lost)
        assert seal.outcome == "repaired"
        assert seal.trace == trace_hash((entry.index, entry.record) for entry in before)


def test_every_flipped_bit_that_damages_leaves_a_prefix_that_becomes_a_whole_tape() -> None:
    whole = written()
    entries, _ = read(whole)
    for bit in random.Random(5).sample(range(len(whole) * 8), 300):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        before, ending = read_what_can_be(bytes(flipped))
        if not before or (isinstance(ending, Ending) and ending.sealed):
            continue
        again, sealed = read(repaired(bytes(flipped)))
        good = [entry for entry in before if not isinstance(entry.record, Seal)]
        assert again[: len(good)] == good == entries[: len(good)]
        assert sealed.canonical


def test_text_is_copied_byte_for_byte_whatever_it_was() -> None:
    raw = b'{ "k":"head","i":0,"tape":1,"must":["like"],"started_at":"\\u0061","later":[1.50] }'
    odd = b'{"k":"crash","i":1,"frames":[1e2]}'
    data = zipped(*chained(raw, odd, {"k": "request", "t": 7, "method": "GET", "url": "http://x/", "headers": []}))[:-8]
    with pytest.raises(TapeFormatError):  # the request has no body
        read(data)
    lines = gzip.decompress(zipped(*chained(raw, odd)))
    out = repaired(data)
    assert gzip.decompress(out).startswith(lines)
    assert isinstance(read(out)[0][1].record, Unknown)


def test_references_in_what_is_kept_stay_references() -> None:
    body = b"x" * 500
    records = [
        Request(t=1, method=b"POST", url=URL, body=body),
        Request(t=2, method=b"POST", url=URL, body=Like(1, 500, b"y", 0)),
    ]
    out = repaired(written(records, seal=False))
    assert gzip.decompress(out).count(b"x" * 500) == 1
    second = read(out)[0][2].record
    assert isinstance(second, Request)
    assert second.body == body + b"y"


def test_a_seal_and_what_follows_it_are_dropped() -> None:
    data = written() + zipped(b"more\n")
    entries, ending = read(repaired(data))
    assert ending.canonical
    note = entries[-2].record
    assert isinstance(note, Note)
    assert "a seal and all that followed dropped" in (note.text or "")
    assert sum(isinstance(entry.record, Seal) for entry in entries) == 1


def test_the_seal_has_a_digest_of_each_lane() -> None:
    records = [Request(t=1, method=b"GET", url=URL, lane=lane) for lane in ("m", "m/t0", "m")]
    seal = read(repaired(written(records, seal=False)))[0][-1].record
    assert isinstance(seal, Seal)
    hasher = TraceHasher()
    for number, record in enumerate((HEAD, *records)):
        hasher.feed(number, record)
    assert seal.lanes == hasher.lanes()
    assert set(seal.lanes) == {"m", "m/t0"}


def test_a_big_tape_gets_restart_points() -> None:
    lots = [Note(t=n, what="x", text=random.Random(n).randbytes(50_000).hex()) for n in range(40)]
    out = repaired(written(lots, seal=False, commits=False))
    at = [at for at in range(len(out)) if out.startswith(b"\0\0\xff\xff", at)]
    assert len(at) > 1
    # After a full flush nothing before is needed to read on.
    assert any(_reads_on(out[start + 4 :]) for start in at[1:])
    assert sum(entry.size for entry in read(out)[0]) > RESTART_EVERY


def _reads_on(data: bytes) -> bool:
    try:
        return len(zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[:50_000])) > 1000
    except zlib.error:
        return False


def test_what_the_shims_wrote_counts_once() -> None:
    clock, lane, end = (
        Clock(t=3, lane="m", n=0, ns=5),
        Lane(t=4, id="m/t0", name="[redacted]"),
        LaneEnd(t=5, lane="m", reads=1),
    )
    note = Note(t=6, what="process", data={"pid": 1})
    kept = kept_of(read(written([clock, lane, end, note, note], seal=False))[0])
    assert kept.t == 6
    assert not kept.lacks(Clock(t=99, lane="m", n=0, ns=5))
    assert kept.lacks(Clock(t=99, lane="m", n=1, ns=5))
    assert not kept.lacks(Lane(t=99, id="m/t0", name="secret"))
    assert [kept.lacks(note) for _ in range(3)] == [False, False, True]
    assert kept.lacks(LaneEnd(t=5, lane="m", reads=2))


def test_what_is_added_stands_after_what_was_taped() -> None:
    clock = Clock(t=5, lane="m", n=0, ns=5)
    entries, ending = read(repaired(written(seal=False), (clock,)))
    assert [type(entry.record) for entry in entries[-3:]] == [Clock, Note, Seal]
    assert ending.canonical


def test_plain_text_looks_no_further_than_it_must() -> None:
    data = zipped(b"one\n", b"two\n") + b"not gzip"
    assert b"".join(plain_text([data[:3], data[3:]], 6)) == b"one\ntw"
    assert [*plain_text([data], 0)] == []


def test_a_request_without_an_identity_can_not_be_kept() -> None:
    kept = Kept("t")
    bad = Request(t=1, method=b"GET", url=b"/no-host", lane="m")
    with pytest.raises(TapeFormatError, match="line 2"):
        kept.see(Entry(1, START, 10, bad))
    assert kept.records == 0
    assert kept.trace.lanes() == {}
