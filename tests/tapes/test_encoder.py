import contextlib
import gzip
import zlib
from collections.abc import Callable

import orjson
import pytest
from blake3 import blake3
from tapesamples import HEAD, RECORDS, read, written

from tapeproxy.tapes.encoder import RESTART_EVERY, TapeEncoder
from tapeproxy.tapes.gzipping import stored_member
from tapeproxy.tapes.records import Chunks, Head, Like, Note, Record, Request, Unknown


def lines(data: bytes) -> list[bytes]:
    return gzip.decompress(data).splitlines(keepends=True)


def test_every_line_is_one_json_object_in_order_with_its_number() -> None:
    found = [orjson.loads(line) for line in gzip.decompress(written()).split(b"\n")[:-1]]
    assert [(obj["k"], obj["i"]) for obj in found] == [
        ("head", 0),
        *((record.kind, index) for index, record in enumerate(RECORDS, 1)),
        ("seal", 8),
    ]
    assert all([*obj][:2] == ["k", "i"] and [*obj][-1] == "h" for obj in found)


def test_the_chain_runs_from_zeros_over_exact_bytes() -> None:
    last = bytes(32)
    for line in gzip.decompress(written()).split(b"\n")[:-1]:
        last = blake3(last + line[:-72]).digest()
        assert line[-72:] == b',"h":"' + last.hex().encode() + b'"}'


def test_the_seal_is_alone_in_a_stored_member_and_holds_the_hash_of_the_file_before_it() -> None:
    data = written()
    seal = gzip.decompress(data).split(b"\n")[-2] + b"\n"
    before = data.removesuffix(stored_member(seal))
    assert before != data
    assert orjson.loads(seal)["file"] == blake3(before).hexdigest()
    assert orjson.loads(seal)["records"] == len(RECORDS) + 1


def test_a_flush_reads_up_to_the_last_record() -> None:
    encoder = TapeEncoder(HEAD)
    data = encoder.flush()
    for count, record in enumerate(RECORDS, 2):
        index = encoder.add(record)
        assert index == count - 1 == encoder.index - 1
        data += encoder.flush()
        assert zlib.decompressobj(31).decompress(data).count(b"\n") == count
        assert encoder.flush() == b""


def test_hash_is_that_of_the_last_line() -> None:
    encoder = TapeEncoder(HEAD)
    line = zlib.decompressobj(31).decompress(encoder.flush())
    assert line[-67:-3] == encoder.hash.hex().encode()


def test_restart_points_come_about_every_mebibyte() -> None:
    encoder, restarts = TapeEncoder(HEAD), 0
    encoder.flush()
    for _ in range(10):
        encoder.add(Note(t=0, what="x", text="y" * (RESTART_EVERY // 4)))
        data = encoder.flush()
        # After a full flush the window is empty, so what follows inflates on its own.
        encoder.add(Note(t=0, what="x", text="y" * 1000))
        with contextlib.suppress(zlib.error):
            restarts += zlib.decompressobj(-15).decompress(encoder.flush()).endswith(b"\n")
        assert data
    assert restarts == 2


LONG = Note(t=0, what="x", text="\x01" * (43 << 20))

REFUSED: list[tuple[Record, str]] = [
    (Note(t=0, what="\ud800"), "surrogates"),
    (Note(t=0, what="x", text="\ud800"), "surrogates"),
    (Note(t=2**64, what="x"), "64-bit"),
    (Note(t=0, what="x", data={"a": {1, 2}}), "set"),
    (Note(t=0, what="x", extra={"k": "head"}), "every line's own"),
    (Note(t=0, what="x", extra={"i": 7}), "every line's own"),
    (Unknown(kind="x", extra={"h": "0"}), "every line's own"),
    (LONG, "longer"),
    (Request(t=0, method=b"", url=b"", body=Like(1, whole=True)), "does not announce bodies of the form ref"),
    (Chunks(t=0, of=1, parts=((0, b""), (0, Like(1)))), "does not announce bodies of the form like"),
]


@pytest.mark.parametrize(("record", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_no_line_can_hold_is_refused_and_leaves_the_tape_as_it_was(record: Record, why: str) -> None:
    encoder = TapeEncoder(Head(started_at="x"))
    data = encoder.flush()
    with pytest.raises(ValueError, match=why):
        encoder.add(record)
    assert encoder.flush() == b""
    encoder.add(Note(t=1, what="after"))
    data += encoder.seal(t=2, trace="", outcome="exit")
    assert read(data)[1].canonical


def test_a_command_line_that_is_not_utf8_survives() -> None:
    head = Head(started_at="x", argv=("cat", "caf\udce9"), cwd="/\udcff")
    assert read(written((), head))[0][0].record == head


@pytest.mark.parametrize(
    "again",
    [lambda encoder: encoder.add(Note(t=0, what="x")), lambda encoder: encoder.seal(t=0, trace="", outcome="")],
)
def test_nothing_comes_after_the_seal(again: Callable[[TapeEncoder], object]) -> None:
    encoder = TapeEncoder(HEAD)
    encoder.seal(t=0, trace="", outcome="exit")
    with pytest.raises(ValueError, match="sealed"):
        again(encoder)
    assert encoder.flush() == b""


def test_a_tape_of_zeros_can_be_read_again() -> None:
    parts = ((0, b"a" * (20 << 20)),)
    data = written([Request(t=0, method=b"GET", url=b"u"), Chunks(t=0, of=1, parts=parts)])
    assert read(data)[1].canonical
    assert len(data) < 1 << 20
