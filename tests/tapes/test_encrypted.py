"""The container of encrypted tapes, with its real cipher: what was changed, moved or left out is found."""

import itertools
from collections.abc import Callable

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.encrypted import (
    CHUNK,
    COSTS,
    SIZE,
    TAG,
    Decrypter,
    Encrypter,
    Header,
    Keys,
    check_keys,
    parse_header,
)
from tapeproxy.tapes.errors import LockedTapeError, TapeFormatError
from tapeproxy.tapes.magic import is_encrypted

MASTER = bytes(range(32))
SEALED = CHUNK + TAG


def header(salt: bytes = b"s" * 32) -> Header:
    return Header("key", 0, salt)


def encrypted(plain: bytes, step: int = 0, salt: bytes = b"s" * 32) -> bytes:
    keys = header(salt).keys(MASTER)
    encrypter = Encrypter(header(salt), keys, AESGCM(keys.key).encrypt)
    pieces = [plain[at : at + step] for at in range(0, len(plain), step)] if step else [plain]
    middle = [chunk for piece in pieces for chunk in encrypter.feed(piece)]
    return b"".join((encrypter.begin(), *middle, encrypter.finish()))


def opening(keys: Keys) -> Callable[[bytes, bytes, bytes], bytes | None]:
    def attempt(nonce: bytes, sealed: bytes, associated: bytes) -> bytes | None:
        try:
            return AESGCM(keys.key).decrypt(nonce, sealed, associated)
        except InvalidTag:
            return None

    return attempt


def decrypted(data: bytes, step: int = 0, master: bytes = MASTER) -> bytes:
    found, check = parse_header(data, "t")
    keys = found.keys(master)
    check_keys(keys, check, found, "t")
    decrypter = Decrypter(found, keys, opening(keys), "t")
    rest = data[SIZE:]
    pieces = [rest[at : at + step] for at in range(0, len(rest), step)] if step else [rest]
    return b"".join([*(plain for piece in pieces for plain in decrypter.feed(piece)), decrypter.finish()])


LENGTHS = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 5]


def content(length: int) -> bytes:
    return (b"tape" * (length // 4 + 1))[:length]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("step", [0, 7001, CHUNK, SEALED])
def test_what_was_encrypted_comes_back(length: int, step: int) -> None:
    data = encrypted(content(length), step)
    assert data == encrypted(content(length)), "the pieces leave no mark"
    assert is_encrypted(data)
    assert len(data) == SIZE + length + TAG * max(1, -(-length // CHUNK))
    assert decrypted(data, step) == content(length)


@given(st.binary(max_size=300), st.integers(1, 40), st.binary(min_size=32, max_size=32))
def test_round_trip(plain: bytes, step: int, salt: bytes) -> None:
    assert decrypted(encrypted(plain, step, salt), step) == plain


def test_byte_by_byte_and_across_a_boundary() -> None:
    assert decrypted(encrypted(content(CHUNK + 3), 1), 1) == content(CHUNK + 3)


def test_every_flipped_bit_is_found() -> None:
    data = encrypted(content(40))
    for at, bit in itertools.product(range(len(data)), range(8)):
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        with pytest.raises((TapeFormatError, LockedTapeError)):
            decrypted(bytes(changed))


@pytest.mark.parametrize("length", [40, CHUNK, CHUNK + 30])
def test_every_cut_is_found(length: int) -> None:
    data = encrypted(content(length))
    ends = range(len(data)) if length == 40 else [*range(100), *range(len(data) - 100, len(data)), SIZE + SEALED]
    for end in (end for end in ends if end < len(data)):
        with pytest.raises(TapeFormatError):
            decrypted(data[:end])


def chunks(data: bytes) -> list[bytes]:
    return [data[at : at + SEALED] for at in range(SIZE, len(data), SEALED)]


A = encrypted(content(3 * CHUNK + 9))
B = encrypted(content(3 * CHUNK + 9)[::-1], salt=b"t" * 32)
FULL = encrypted(content(3 * CHUNK))


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ([1, 0, 2, 3], f"byte {SIZE} "),
        ([0, 2, 1, 3], f"byte {SIZE + SEALED} "),
        ([0, 0, 1, 2, 3], f"byte {SIZE + SEALED} "),
        ([0, 2, 3], f"byte {SIZE + SEALED} "),
        ([1, 2, 3], f"byte {SIZE} "),
        ([0, 1, 2], f"cut off after byte {SIZE + 2 * SEALED}"),
        ([0], f"cut off after byte {SIZE}"),
        ([], f"cut off after byte {SIZE}"),
        ([0, 1, 2, 3, 3], f"byte {SIZE + 3 * SEALED} "),
        ([3], f"byte {SIZE} "),
    ],
)
def test_chunks_moved_repeated_and_left_out(order: list[int], said: str) -> None:
    parts = chunks(A)
    with pytest.raises(TapeFormatError, match=said):
        decrypted(A[:SIZE] + b"".join(parts[i] for i in order))


@pytest.mark.parametrize("number", range(4))
def test_a_chunk_of_another_file_with_the_same_key(number: int) -> None:
    mine, other = chunks(A), chunks(B)
    with pytest.raises(TapeFormatError, match="the key is right, but"):
        decrypted(A[:SIZE] + b"".join(other[i] if i == number else mine[i] for i in range(4)))


def test_something_after_the_end() -> None:
    for more in (b"x", b"x" * SEALED, FULL):
        for data in (A, FULL, encrypted(b"")):
            with pytest.raises(TapeFormatError, match="what begins at byte"):
                decrypted(data + more)


def test_no_content_has_two_forms() -> None:
    found, _ = parse_header(FULL)
    keys = found.keys(MASTER)
    seal = AESGCM(keys.key).encrypt
    parts = [
        seal(keys.nonce(0, last=False), bytes(CHUNK), FULL[:SIZE]),
        seal(keys.nonce(1, last=True), b"", FULL[:SIZE]),
    ]
    with pytest.raises(TapeFormatError, match="what begins at byte"):
        decrypted(FULL[:SIZE] + b"".join(parts))


def test_another_key_is_told_from_an_edit() -> None:
    with pytest.raises(LockedTapeError, match="t: this key is not the one"):
        decrypted(A, master=bytes(32))
    with pytest.raises(LockedTapeError, match="this passphrase is not the one"):
        locked = Header("passphrase", 17, bytes(32))
        check_keys(locked.keys(MASTER), b"other", locked, "t")


def rewritten(**fields: int) -> bytes:
    """A header with other numbers in it and a right checksum, as somebody hostile makes it."""
    from blake3 import blake3

    raw = bytearray(A[: SIZE - 4])
    for name, value in fields.items():
        raw[{"version": 8, "kind": 9, "cost": 10, "reserved": 11}[name]] = value
    return bytes(raw) + blake3(raw).digest(4) + A[SIZE:]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (rewritten(kind=1, cost=63), "kind 1, cost 63"),
        (rewritten(kind=1, cost=COSTS.stop), "is refused"),
        (rewritten(kind=1, cost=0), "is refused"),
        (rewritten(cost=17), "is refused"),
        (rewritten(kind=2), "is refused"),
        (rewritten(version=3), "encrypted in format 3; this version reads formats up to 2"),
        (rewritten(version=0), "header of the encrypted tape was changed"),
        (rewritten(reserved=1), "header of the encrypted tape was changed"),
        (A[: SIZE - 1], "cut off in its header"),
        (b"\x1f\x8b" + bytes(99), "not an encrypted tape"),
    ],
)
def test_hostile_headers(data: bytes, said: str) -> None:
    with pytest.raises(TapeFormatError, match=said):
        decrypted(data)


def test_keys_differ_with_everything_in_the_header() -> None:
    headers = [header(), header(b"x" * 32), Header("passphrase", 16, b"s" * 32), Header("passphrase", 17, b"s" * 32)]
    assert len({one.keys(MASTER).key for one in headers}) == len(headers)


def test_nonces_never_repeat() -> None:
    keys = header().keys(MASTER)
    nonces = {keys.nonce(number, last=last) for number in range(100) for last in (False, True)}
    assert len(nonces) == 200
    assert {len(nonce) for nonce in nonces} == {12}
    with pytest.raises(ValueError, match="more than"):
        keys.nonce(1 << 32, last=True)


def test_secrets_are_not_in_a_repr() -> None:
    keys = header().keys(MASTER)
    assert repr(keys.key)[2:-1] not in repr(keys)


@given(st.binary(max_size=200))
def test_garbage_is_refused_by_name(data: bytes) -> None:
    for one in (data, A[:8] + data, A[:SIZE] + data):
        with pytest.raises((TapeFormatError, LockedTapeError)):
            decrypted(one)
