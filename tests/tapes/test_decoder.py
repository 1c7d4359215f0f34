"""The decoder against whatever a file can hold: every flip, every cut, every order, every size."""

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from tapesamples import HEAD, RECORDS, chained, flipped, read, read_what_can_be, written, zipped

from tapeproxy.tapes.decoder import Ending, Entry, Limits, TapeDecoder
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.gzipping import stored_member
from tapeproxy.tapes.records import Chunks, End, Like, Note, Record, Request, Seal, Unknown

WHOLE = written()
ENTRIES, ENDING = read(WHOLE)
LINES = gzip.decompress(WHOLE).splitlines(keepends=True)


def test_what_was_written_is_read_with_references_resolved() -> None:
    asked = RECORDS[4]
    assert isinstance(asked, Request)
    expected = [HEAD, *RECORDS[:4], replace(asked, body=b"hello, w\xffrld"), *RECORDS[5:]]
    assert [entry.record for entry in ENTRIES[:-1]] == expected
    assert isinstance(ENTRIES[-1].record, Seal)
    assert [entry.index for entry in ENTRIES] == list(range(9))
    assert [entry.size for entry in ENTRIES] == [len(line) for line in LINES]
    assert [entry.hash.hex().encode() for entry in ENTRIES] == [line[-67:-3] for line in LINES]
    last, file = ENTRIES[-1].hash.hex(), blake3(WHOLE).hexdigest()
    assert Ending(sealed=True, canonical=True, records=9, lost=0, hash=last, file=file) == ENDING


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("seal", [True, False])
@pytest.mark.parametrize("fed", [1, 2, 3, 7, 100])
def test_the_pieces_it_comes_in_make_no_difference(fed: int, seal: bool, commits: bool) -> None:
    data = written(seal=seal, commits=commits)
    assert read(data, fed) == read(data)
    assert read(data)[1].canonical is seal


def test_two_pieces_cut_anywhere_make_no_difference() -> None:
    for cut in range(1, len(WHOLE)):
        decoder = TapeDecoder()
        entries = [*decoder.feed(WHOLE[:cut]), *decoder.feed(WHOLE[cut:])]
        assert (entries, decoder.finish()) == (ENTRIES, ENDING), cut


@pytest.mark.parametrize("commits", [True, False])
def test_every_flipped_bit_is_noticed(commits: bool) -> None:
    data = written(commits=commits)
    entries, _ = read(data)
    verdicts = dict.fromkeys(("damaged", "interrupted", "not canonical"), 0)
    for at, number, found, ending in flipped(data):
        bit = 8 * at + number
        assert found == entries[: len(found)], bit
        if isinstance(ending, TapeFormatError):
            verdicts["damaged"] += 1
        elif not ending.sealed:
            verdicts["interrupted"] += 1
        else:
            assert found == entries, bit
            assert not ending.canonical, bit
            verdicts["not canonical"] += 1
    assert min(verdicts.values()) > 0
    assert verdicts["damaged"] > 0.9 * len(data) * 8


@pytest.mark.parametrize("seal", [True, False])
@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("fed", [0, 8])
def test_every_cut_reads_a_prefix_and_says_so(fed: int, commits: bool, seal: bool) -> None:
    data = written(commits=commits, seal=seal)
    entries, _ = read(data)
    for length in range(len(data)):
        found, ending = read_what_can_be(data[:length], fed)
        assert found == entries[: len(found)]
        if isinstance(ending, TapeFormatError):
            assert found == []
            assert "cut before its first record was written" in str(ending)
        else:
            assert not ending.canonical
            # Only the end of the seal's own member may be missing from what still counts as sealed.
            assert not ending.sealed or len(data) - length <= 8
            assert ending.records == len(found)


def test_a_cut_tape_reads_up_to_its_last_flush() -> None:
    encoder = TapeEncoder(HEAD)
    ends = [len(data := encoder.flush())]
    for record in RECORDS:
        encoder.add(record)
        data += encoder.flush()
        ends.append(len(data))
    for length in range(ends[0], len(data)):
        found, ending = read_what_can_be(data[:length])
        assert isinstance(ending, Ending)
        assert len(found) >= sum(end <= length for end in ends)


@pytest.mark.parametrize("fed", [0, 1, 64])
def test_every_record_before_damage_is_given_out_whatever_the_pieces(fed: int) -> None:
    for at in random.Random(7).sample(range(10, len(WHOLE)), 60):
        damaged = WHOLE[:at] + bytes(byte ^ 0x55 for byte in WHOLE[at : at + 9]) + WHOLE[at + 9 :]
        found, ending = read_what_can_be(damaged, fed)
        byte_by_byte, same = read_what_can_be(damaged, 1)
        assert found == byte_by_byte
        assert str(ending) == str(same)


def fails(data: bytes, what: str, line: int | None = None, limits: Limits | None = None) -> TapeFormatError:
    with pytest.raises(TapeFormatError, match=what) as caught:
        read(data, 0, limits)
    if line is not None:
        assert caught.value.place.line == line
    return caught.value


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        (LINES[1:], 1, "not a tape: its first record is not a head"),
        ([*LINES[:3], LINES[2], *LINES[3:]], 4, "hash does not fit"),
        ([*LINES[:3], *LINES[4:]], 4, "hash does not fit"),
        ([*LINES[:3], LINES[4], LINES[3], *LINES[5:]], 4, "hash does not fit"),
        ([LINES[0], LINES[0], *LINES[1:]], 2, "second head: two tapes were joined"),
        ([*LINES, *LINES], 10, "a record after the seal"),
        ([*LINES, LINES[3]], 10, "a record after the seal"),
        ([*LINES, b"\n"], 10, "a record after the seal"),
        ([*LINES, b"x"], 10, "a record after the seal"),
        ([*LINES[:2], b"\n", *LINES[2:]], 3, "the line is not JSON"),
        ([line.replace(b"\n", b"\r\n") for line in LINES], 1, "does not end in its hash"),
        ([b"\xef\xbb\xbf" + LINES[0], *LINES[1:]], 1, "the line is not JSON"),
        ([LINES[0], LINES[1].replace(b"hello", b"hallo"), *LINES[2:]], 2, "hash does not fit"),
        ([LINES[0], LINES[1][:-4] + b'0"}\n', *LINES[2:]], 2, "hash does not fit"),
        ([LINES[0], LINES[1][:-67] + LINES[1][-67:].upper(), *LINES[2:]], 2, "hash does not fit"),
        ([LINES[0], LINES[1].replace(b'"i":1', b'"i" :1'), *LINES[2:]], 2, "hash does not fit"),
        ([b"\0\0\0\n"], 1, "not JSON"),
        ([b"[]\n"], 1, "not a JSON object"),
        ([b'"x"\n'], 1, "not a JSON object"),
        ([b"NaN\n"], 1, "not JSON"),
        ([b'{"k":"head","tape":1,"started_at":"x"}\n'], 1, "does not end in its hash"),
        ([b'{"k":"head","tape":1,"x":' + b"[" * 5000 + b"]" * 5000 + b"}\n"], 1, "not JSON"),
        ([b'{"k":"head","tape":1,"x":"\\ud800"}\n'], 1, "not JSON"),
        ([b'{"k":"head","tape":1,"x":"\xed\xa0\x80"}\n'], 1, "not JSON"),
        ([b'{"k":"head","tape":1,"x":1e999}\n'], 1, "not JSON"),
    ],
)
def test_lines_that_were_moved_or_changed_are_found(lines: list[bytes], line: int, what: str) -> None:
    fails(zipped(*lines), what, line)


START: dict[str, Any] = {"k": "head", "tape": 1, "must": ["like", "ref"], "started_at": "2026-01-01T00:00:00Z"}
ASK: dict[str, Any] = {"k": "request", "t": 0, "method": "GET", "url": "u", "headers": [], "body": "abc"}
SEAL: dict[str, Any] = {"k": "seal", "t": 0, "records": 1, "trace": "", "outcome": "exit", "file": ""}


@pytest.mark.parametrize(
    ("objects", "line", "what"),
    [
        ([START | {"k": "note"}], 1, "not a tape: its first record is not a head"),
        ([{"k": "head"}], 1, "no format version \\('tape' is None\\)"),
        ([START | {"tape": True}], 1, "no format version"),
        ([START | {"tape": 0}], 1, "no format version"),
        ([START | {"tape": [[[]]]}], 1, "no format version \\('tape' is an array\\)"),
        ([START | {"tape": 2, "by": "tapeproxy 9"}], 1, "has format 2, written by 'tapeproxy 9'; .* up to format 1"),
        ([START | {"tape": 2, "by": "\x1b[2J\x07" + "x" * 500}], 1, r"by '\\x1b\[2J\\x07x{72}\.\.\.'; "),
        ([START | {"tape": 2**63}], 1, "has format 9223372036854775808, written by an unknown version"),
        ([START | {"must": ["like", "x"]}], 1, "without understanding 'x'"),
        ([START | {"must": [["x"], {}, 1, "y", None, "z"]}], 1, "understanding an array, an object, 1, 'y', None\n"),
        ([START | {"must": "like"}], 1, "'must' is not a list but 'like'"),
        ([START | {"must": None}], 1, "'must' is not a list but None"),
        ([START | {"started_at": 1}], 1, "field 'started_at' of a 'head' record must be a string"),
        ([START | {"i": 1}], 1, "says it is number 1, not 0"),
        ([START | {"i": False}], 1, "says it is number False, not 0"),
        ([START, ASK | {"i": 1.0}], 2, "says it is number 1.0, not 1"),
        ([START, ASK | {"i": "1"}], 2, "says it is number '1', not 1"),
        ([START, ASK | {"i": None}], 2, "says it is number None, not 1"),
        ([START, {"i": 1}], 2, "field 'k' of a '\\?' record must be a string"),
        ([START, ASK | {"t": -1}], 2, "field 't' of a 'request' record must be an integer from 0"),
        ([START, ASK | {"body": {"b64": "?"}}], 2, "field 'body' of a 'request' record must be valid base64"),
        ([START, ASK | {"body": {"ref": 1}}], 2, "refers to record 1, which is not an earlier record"),
        ([START, ASK | {"body": {"ref": 9}}], 2, "refers to record 9"),
        ([START, ASK | {"body": {"ref": 0}}], 2, "refers to record 0"),
        ([START, ASK, ASK | {"body": {"like": 1, "head": 3, "tail": 1}}], 3, "cuts 3\\+1 bytes from a body of 3"),
        ([START | {"must": ["ref"]}, ASK, ASK | {"body": {"like": 1, "head": 0, "tail": 0}}], 3, "not announce"),
        ([START | {"must": []}, ASK, ASK | {"body": {"ref": 1}}], 3, "not announce"),
        ([START, SEAL, SEAL], 3, "after the seal"),
        ([START, SEAL | {"records": 2}], 2, "seal counts 2 records before it, not 1"),
        ([START, ASK | {"later": [[[]]] * 3}, ASK | {"later": {"a": [[[[]]]]}}, SEAL], 4, "counts 1 records"),
    ],
)
def test_right_hashes_do_not_make_a_wrong_record_right(objects: list[dict[str, Any]], line: int, what: str) -> None:
    fails(zipped(*chained(*objects)), what, line)


def test_a_newer_format_is_refused_before_its_hashes_are_looked_at() -> None:
    error = fails(zipped(b'{"k":"head","tape":2,"hash":"sha3"}\n'), "has format 2")
    assert "install a newer tapeproxy" in error.fix


def test_a_later_versions_kinds_and_fields_are_kept() -> None:
    later = {"k": "crash", "frames": [{"a": 1.5, "b": None}], "big": 2**64 - 1, "small": -(2**63)}
    data = zipped(*chained(START, ASK | {"later": ["x"]}, later))
    entries, ending = read(data)
    assert isinstance(entries[1].record, Request)
    assert entries[1].record.extra == {"later": ["x"]}
    assert entries[2].record == Unknown(kind="crash", extra={key: later[key] for key in ("frames", "big", "small")})
    assert not ending.sealed
    again = written([entry.record for entry in entries[1:]], replace(HEAD, must=()))
    assert [entry.record for entry in read(again)[0][1:-1]] == [entry.record for entry in entries[1:]]


def test_of_two_fields_of_one_name_the_last_counts() -> None:
    raw = b'{"k":"head","i":0,"tape":1,"started_at":"a","started_at":"b"}'
    (entry,), _ = read(zipped(*chained(raw)))
    assert entry.record.to_json()["started_at"] == "b"
    # The hash is the one at the line's end, whatever else is called h.
    raw = b'{"h":"x","k":"head","i":0,"tape":1,"started_at":"a"}'
    assert len(read(zipped(*chained(raw)))[0]) == 1


def test_other_spacing_and_order_are_fine() -> None:
    raw = b'{ "tape" : 1 ,\t"started_at":"\\u0061","i":0,  "k":"head" }'
    line = chained(raw)[0]
    assert read(zipped(line))[0][0].record.to_json()["started_at"] == "a"


# What others do to a finished file: the file, whether its content still reads as sealed, or the error.
DONE: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "recompressed": (lambda tape: gzip.compress(gzip.decompress(tape), 6), None),
    "one member per line": (lambda _: b"".join(map(zipped, LINES)), None),
    "a stored member for everything": (lambda _: stored_member(b"".join(LINES)), None),
    "the seal in the records' member": (lambda _: zipped(*LINES), None),
    "the seal compressed": (lambda tape: tape.removesuffix(stored_member(LINES[-1])) + zipped(LINES[-1]), None),
    "an empty member between": (
        lambda tape: tape.removesuffix(stored_member(LINES[-1])) + zipped() + stored_member(LINES[-1]),
        None,
    ),
    "an empty member after": (lambda tape: tape + gzip.compress(b""), None),
    "an empty stored member after": (lambda tape: tape + stored_member(b""), None),
    "a file name in the header": (lambda tape: tape[:3] + b"\x08" + tape[4:10] + b"tape.jsonl\0" + tape[10:], None),
    "another time in the header": (lambda tape: tape[:4] + b"\1\2\3\4" + tape[8:], None),
    "another system in the header": (lambda tape: tape[:9] + b"\x03" + tape[10:], None),
    "the start of another member": (lambda tape: tape + b"\x1f\x8b", None),
    "garbage appended": (lambda tape: tape + b"garbage", "is not gzip: something was appended"),
    "zeros appended": (lambda tape: tape + bytes(512), "is not gzip: something was appended"),
    "a newline appended": (lambda tape: tape + b"\n", None),
    "a record appended": (lambda tape: tape + zipped(LINES[3]), "a record after the seal"),
    "text appended": (lambda tape: tape + zipped(b"x"), "a record after the seal"),
    "another tape appended": (lambda tape: tape + tape, "a record after the seal"),
    "another seal appended": (lambda tape: tape + stored_member(LINES[-1]), "a record after the seal"),
    "put after an interrupted one": (lambda tape: zipped(*LINES[:3]) + tape, "second head: two tapes were joined"),
    "put after a byte": (lambda tape: b"\0" + tape, "not a tape: it is not gzip"),
    "not compressed": (gzip.decompress, "not a tape: it is not gzip"),
    "zlib, not gzip": (lambda tape: zlib.compress(gzip.decompress(tape)), "not a tape: it is not gzip"),
    "twice compressed": (gzip.compress, "not JSON"),
}


@pytest.mark.parametrize("name", DONE)
@pytest.mark.parametrize("fed", [0, 1])
def test_what_others_do_to_a_finished_file(name: str, fed: int) -> None:
    do, error = DONE[name]
    data = do(WHOLE)
    found, ending = read_what_can_be(data, fed)
    if error is None:
        assert found == ENTRIES
        assert ending == replace(ENDING, canonical=False, file=blake3(data).hexdigest())
    else:
        assert isinstance(ending, TapeFormatError)
        assert error in str(ending)


@pytest.mark.parametrize("data", [b"", b"\x1f", WHOLE[:10], zipped(), zipped(b'{"k":"head"'), zipped() * 3])
def test_a_file_without_a_record_is_not_a_tape(data: bytes) -> None:
    error = fails(data, "this is not a tape, or it was cut before its first record was written")
    assert str(error).startswith("t: ")
    assert "begins with a head record" in error.fix


def test_what_is_lost_at_a_cut_is_counted() -> None:
    data = zipped(*LINES[:3], LINES[3][:20])
    last, file = ENTRIES[2].hash.hex(), blake3(data).hexdigest()
    assert read(data)[1] == Ending(sealed=False, canonical=False, records=3, lost=20, hash=last, file=file)


def test_a_seal_that_names_another_file_is_not_canonical() -> None:
    encoder = TapeEncoder(HEAD)
    data = encoder.flush() + encoder.seal(t=0, trace="", outcome="exit")
    lines = chained(*[orjson.loads(line[:-73] + b"}") for line in gzip.decompress(data).splitlines(keepends=True)])
    other = zipped(lines[0]) + stored_member(lines[1])
    assert read(other)[1] == replace(read(data)[1], canonical=False, file=blake3(other).hexdigest())


@given(st.binary(max_size=300))
def test_any_bytes_give_records_or_a_named_error(data: bytes) -> None:
    for text in (data, gzip.compress(data), WHOLE[:-30] + data, zipped(*LINES[:3], data)):
        found, _ = read_what_can_be(text)
        assert found == ENTRIES[: len(found)]


bodies = st.binary(max_size=80)
parts = st.lists(st.tuples(st.none() | st.integers(0, 2**62), bodies), max_size=3).map(tuple)


@given(st.lists(st.tuples(bodies, parts, bodies), max_size=5), st.integers(1, 60))
def test_any_conversation_comes_back(turns: list[tuple[bytes, Any, bytes]], fed: int) -> None:
    records: list[Record] = []
    expected: list[Record] = []
    for body, given_parts, new in turns:
        ask = Request(t=1, method=b"POST", url=b"http://x", headers=((body, new),), body=body)
        of = len(records) + 1
        chunks = Chunks(t=1, of=of, parts=given_parts)
        head, tail = len(body) // 2, len(body) // 3
        like = replace(ask, body=Like(of, head, new, tail))
        ref = Chunks(t=2, of=of, parts=((0, Like(of + 1, whole=True)),))
        records += [ask, chunks, like, ref, End(t=1, of=of, how="complete")]
        built = replace(ask, body=body[:head] + new + body[len(body) - tail :])
        joined = b"".join(data for _, data in given_parts)
        expected += [ask, chunks, built, replace(ref, parts=((0, joined),)), records[-1]]
    data = written(records)
    entries, ending = read(data, fed)
    assert [entry.record for entry in entries[1:-1]] == expected
    assert ending.canonical


def feed_all(decoder: TapeDecoder, data: bytes) -> list[Entry]:
    return [entry for at in range(0, len(data), 1 << 16) for entry in decoder.feed(data[at : at + (1 << 16)])]


@pytest.mark.parametrize("text", [b"\0", b"x\n"])
def test_a_bomb_is_refused_in_little_memory(text: bytes) -> None:
    bomb = zipped(*LINES[:2]) + gzip.compress(text * (100 << 20))
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(TapeFormatError, match=r"decompression bomb|not JSON"):
            feed_all(TapeDecoder(), bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


def test_a_bomb_of_whole_records_is_refused_too() -> None:
    lines = chained(START, *[{"k": "note", "t": 0, "what": "x", "text": "a" * 20_000_000}] * 3)
    with pytest.raises(TapeFormatError, match="inflates more than 400 times: refused as a decompression bomb"):
        feed_all(TapeDecoder(), gzip.compress(b"".join(lines), 9))


def test_a_line_that_never_ends_is_refused() -> None:
    endless = random.Random(1).randbytes(4000).hex().encode()
    data = zipped(LINES[0], endless)
    fails(data, "the line is longer than 5000 bytes", 2, Limits(line=5000))
    assert read(data, 0, Limits(line=8000))[1].lost == 8000
    fails(zipped(LINES[0], endless + b"\n"), "the line is longer than 5000 bytes", 2, Limits(line=5000))


def test_too_many_members_are_refused() -> None:
    data = zipped(LINES[0]) + zipped() * 50
    assert len(read(data, 0, Limits(members=51))[0]) == 1
    fails(data, "more than 50 gzip members", limits=Limits(members=50))


def test_many_empty_members_take_no_quadratic_time() -> None:
    # Each 20 bytes; copying the rest of a 1 MiB piece for each would move 27 GB.
    data = zipped(LINES[0]) + zipped() * 50_000
    assert len(read(data)[0]) == 1


def test_a_like_bomb_is_refused() -> None:
    objects = [START, ASK | {"body": "x" * 1000}]
    objects += [ASK | {"body": {"like": 1, "head": 1000, "tail": 0, "mid": "y"}} for _ in range(50)]
    data = zipped(*chained(*objects))
    assert len(read(data)[0]) == 52
    fails(data, "expand to more than 20000 bytes", 22, Limits(bodies=20_000))
    deep = [START, ASK, *[ASK | {"body": {"like": of, "head": 3, "tail": 0}} for of in range(1, 66)]]
    fails(zipped(*chained(*deep)), "through more than 64 records", 67)


@pytest.mark.parametrize("window", [None, 1 << 40])
def test_references_to_one_large_body_are_no_bomb_that_goes_off(window: int | None) -> None:
    again = ASK | {"body": {"like": 1, "head": 12 << 20, "tail": 0, "mid": "y"}}
    data = zipped(*chained(START | {"window": window}, ASK | {"body": "0" * (12 << 20)}, *[again] * 100))
    decoder = TapeDecoder()
    seen = 0
    tracemalloc.start()
    try:
        with pytest.raises(TapeFormatError, match="expand to more than 1073741824 bytes: refused as a decompression"):
            for at in range(0, len(data), 1 << 16):
                for _ in decoder.feed(data[at : at + (1 << 16)]):
                    seen += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == 87
    assert peak < 256 << 20


def test_bodies_are_kept_only_for_tapes_that_announce_references() -> None:
    peaks = []
    for must in ((), ("like",)):
        records = [Request(t=0, method=b"GET", url=b"u", body=random.Random(n).randbytes(50_000)) for n in range(100)]
        data = written(records, replace(HEAD, must=must))
        decoder = TapeDecoder()
        tracemalloc.start()
        for at in range(0, len(data), 1 << 16):
            for _ in decoder.feed(data[at : at + (1 << 16)]):
                pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 3 << 20 < 5 << 20 < peaks[1]


def test_an_error_says_where_what_and_what_to_do() -> None:
    error = fails(zipped(*LINES[:3], LINES[2]), "hash does not fit")
    assert str(error) == (
        "t, line 4: the hash does not fit: this line was changed, or one before it was removed, added or moved\n"
        "  the records before it are intact; take the tape again from where it came"
    )
    assert error.exit_code == 5


def test_a_note_is_read_as_it_was_written() -> None:
    note = Note(t=1, what="\u2028", text="\r\n\x00\x7f\x85", data={"": [None, 1.5, -0.0, "\U0010ffff"]})
    assert read(written([note]))[0][1].record == note
