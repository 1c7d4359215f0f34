"""Tapes that are encrypted while they are written: whatever is cut off or changed, nothing else is given out."""

import itertools
from collections.abc import Sequence

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.encrypted import SIZE, TAG, Header, Keys, parse_header
from tapeproxy.tapes.encryptedframes import FRAME, Framer, Unframer
from tapeproxy.tapes.errors import LockedTapeError, TapeFormatError
from tapeproxy.tapes.magic import is_encrypted

MASTER = bytes(range(32))
HEADER = Header("key", 0, b"s" * 32, version=2)
KEYS = HEADER.keys(MASTER)


def written(writes: Sequence[bytes], *, last: bool = True) -> bytes:
    framer = Framer(HEADER, KEYS, AESGCM(KEYS.key).encrypt)
    data = framer.begin + b"".join(map(framer.frames, writes))
    return data + framer.finish() if last else data


def opened(keys: Keys) -> object:
    def open_frame(nonce: bytes, sealed: bytes, associated: bytes) -> bytes | None:
        try:
            return AESGCM(keys.key).decrypt(nonce, sealed, associated)
        except InvalidTag:
            return None

    return open_frame


def read(data: bytes, step: int = 0) -> bytes:
    header, check = parse_header(data)
    if check != header.keys(MASTER).check:
        raise LockedTapeError("another key", where="tape")
    reader = Unframer(header, header.keys(MASTER), opened(header.keys(MASTER)))  # type: ignore[arg-type]  # it is an Open
    rest = data[SIZE:]
    pieces = [rest[at : at + step] for at in range(0, len(rest), step)] if step else [rest]
    return b"".join([*(plain for piece in pieces for plain in reader.feed(piece)), reader.finish()])


@given(st.lists(st.binary(max_size=60), max_size=6), st.integers(0, 30), st.booleans())
def test_what_was_written_comes_back_with_or_without_an_end(writes: list[bytes], step: int, last: bool) -> None:
    data = written(writes, last=last)
    assert is_encrypted(data)
    assert read(data, step) == b"".join(writes)


@pytest.mark.parametrize("length", [FRAME - 1, FRAME, FRAME + 1, 2 * FRAME + 3])
def test_a_long_write_is_several_frames(length: int) -> None:
    data = written([bytes(length)])
    assert read(data) == bytes(length)
    assert len(data) == SIZE + length + (4 + TAG) * (-(-length // FRAME) + 1)


def test_every_cut_reads_the_writes_before_it() -> None:
    writes = [b"one", b"two", b"three"]
    data = written(writes)
    for end in range(SIZE, len(data)):
        assert read(data[:end]) in [b"".join(writes[:n]) for n in range(4)]
    assert read(data[: len(written(writes[:2], last=False)) + 3]) == b"onetwo"


def test_a_flipped_bit_never_gives_anything_else() -> None:
    """A length that has become larger looks like a write that was cut off: what comes after is not given out."""
    writes = [b"one", b"two", b"three"]
    data = written(writes)
    prefixes = [b"".join(writes[:n]) for n in range(4)]
    for at, bit in itertools.product(range(len(data)), range(8)):
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        try:
            assert read(bytes(changed)) in prefixes
            assert at >= SIZE
        except (TapeFormatError, LockedTapeError):
            pass


def frames() -> list[bytes]:
    framer = Framer(HEADER, KEYS, AESGCM(KEYS.key).encrypt)
    return [*map(framer.frames, (b"a", b"b", b"c")), framer.finish()]


@pytest.mark.parametrize("order", ["1023", "001", "023", "1", "013", "3", "01233", "01232"])
def test_frames_moved_repeated_left_out_and_after_the_last(order: str) -> None:
    parts = frames()
    with pytest.raises(TapeFormatError, match="the key is right, but the encrypted tape was changed"):
        read(written([], last=False) + b"".join(parts[int(n)] for n in order))


def test_something_after_the_last_frame_that_is_no_frame() -> None:
    with pytest.raises(TapeFormatError, match="was changed"):
        read(written([b"a"]) + b"x")
