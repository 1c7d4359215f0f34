import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.gzipping import HEADER, MAX_RATIO, Deflater, Inflater, stored_member


def inflate(data: bytes, fed: int = 0, **options: int) -> bytes:
    inflater = Inflater(**options)
    out = bytearray()
    for at in range(0, len(data), fed or len(data)):
        inflater.feed(data[at : at + (fed or len(data))])
        while (text := inflater.read()) is not None:
            out += text
    assert not inflater.open
    assert inflater.consumed == len(data)
    return bytes(out)


@given(st.lists(st.tuples(st.binary(max_size=400), st.sampled_from(["", "flush", "restart"]))))
def test_everything_written_comes_back(script: list[tuple[bytes, str]]) -> None:
    deflater, out = Deflater(), bytearray()
    for data, then in script:
        deflater.write(data)
        if then:
            out += deflater.flush(restart=then == "restart")
    out += deflater.finish()
    plain = b"".join(data for data, _ in script)
    assert gzip.decompress(bytes(out)) == plain
    assert inflate(bytes(out)) == inflate(bytes(out), 1) == plain


def test_what_was_flushed_can_be_read_before_the_end() -> None:
    deflater = Deflater()
    deflater.write(b"one\n")
    first = deflater.flush()
    assert zlib.decompressobj(31).decompress(first) == b"one\n"


def test_a_flush_with_nothing_new_writes_nothing() -> None:
    deflater = Deflater()
    deflater.write(b"one\n")
    deflater.flush()
    assert deflater.flush() == b""


def test_reading_can_begin_at_a_restart_point() -> None:
    deflater = Deflater()
    deflater.write(b"abcabcabc" * 9)
    deflater.flush(restart=True)
    deflater.write(b"abcabcabc" * 9)
    assert zlib.decompressobj(-15).decompress(deflater.flush()) == b"abcabcabc" * 9


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 200_000])
def test_a_stored_member_is_gzip(size: int) -> None:
    data = b"x" * size
    member = stored_member(data)
    assert gzip.decompress(member) == data
    assert member.startswith(HEADER)
    assert len(member) == 10 + 5 * max(1, -(-size // 65535)) + size + 8


def test_a_stored_member_of_equal_pieces_has_one_last_block() -> None:
    data = b"\0" * (3 * 65535)
    assert gzip.decompress(stored_member(data)) == data


@pytest.mark.parametrize("pieces", [1, 3, 12])
def test_endless_zeros_stay_within_the_ratio_that_readers_take(pieces: int) -> None:
    deflater, out, plain = Deflater(), bytearray(), 0
    for _ in range(pieces):
        deflater.write(bytes(5 << 20))
        plain += 5 << 20
        out += deflater.flush()
        assert plain <= MAX_RATIO * len(out)
    out += deflater.finish()
    assert len(gzip.decompress(bytes(out))) == plain


def test_zeros_that_were_never_flushed_stay_within_the_ratio_too() -> None:
    deflater = Deflater()
    for _ in range(50):
        deflater.write(bytes(1 << 19))
    assert len(deflater.finish()) >= (25 << 20) / MAX_RATIO


def test_members_are_read_one_after_the_other() -> None:
    data = gzip.compress(b"one") + gzip.compress(b"") + stored_member(b"two")
    for fed in (0, 1, 2, 3, 7):
        assert inflate(data, fed) == b"onetwo"


def test_a_member_may_end_in_a_piece_that_took_several_steps() -> None:
    data = gzip.compress(b"a" * 100) + gzip.compress(b"b" * 100)
    assert inflate(data) == inflate(data, step=7) == inflate(data, step=7, piece=9) == b"a" * 100 + b"b" * 100


def test_no_read_crosses_a_member_and_taken_adds_up() -> None:
    first, second = gzip.compress(b"one"), gzip.compress(b"two")
    for cut in range(len(first + second)):
        inflater, members, taken = Inflater(), 0, b""
        for piece in ((first + second)[:cut], (first + second)[cut:]):
            inflater.feed(piece)
            while (text := inflater.read()) is not None:
                taken += inflater.taken
                assert text in ((b"one", b"on", b"o", b"e", b"ne", b"") if taken <= first else b"two")
                assert inflater.members - members in (0, 1)
                members = inflater.members
                assert (inflater.members >= 1) == (len(taken) >= len(first))
        assert taken == first + second


def test_output_that_does_not_fit_one_step_is_not_held_back() -> None:
    # 258 bytes come from one symbol: with no input left, zlib still has output when the step is full.
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = stream.compress(b"a" * 5000) + stream.flush(zlib.Z_SYNC_FLUSH)
    for cut in range(1, len(data)):
        whole, small = Inflater(), Inflater(step=7, piece=1)
        out = []
        for inflater in (whole, small):
            inflater.feed(data[:cut])
            text = b""
            while (more := inflater.read()) is not None:
                text += more
            out.append(text)
        assert out[0] == out[1]


@pytest.mark.parametrize("step", [0, 1, 5])
def test_what_precedes_damage_is_given_out_first(step: int) -> None:
    deflater = Deflater()
    deflater.write(b"good\n" * 100)
    good = deflater.flush()
    data = good + b"\xff" * 50  # a block of the reserved type
    inflater, out = Inflater(), b""
    with pytest.raises(zlib.error):
        for at in range(0, len(data), step or len(data)):
            inflater.feed(data[at : at + (step or len(data))])
            while (text := inflater.read()) is not None:
                out += text
    assert out == b"good\n" * 100
    assert inflater.consumed == len(good)


def test_a_wrong_checksum_is_an_error() -> None:
    data = bytearray(gzip.compress(b"one"))
    data[-5] ^= 1
    with pytest.raises(zlib.error):
        inflate(bytes(data))
