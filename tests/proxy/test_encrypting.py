"""Encrypted tapes as files: read as plain ones are, given the secret; nothing else tells what is in them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tapesamples import RECORDS, written

from tapeproxy.proxy.encrypting import decrypt, encrypt
from tapeproxy.proxy.tapefile import is_locked, load, read_entries
from tapeproxy.proxy.unlocking import Ask, Secret, ask_nobody
from tapeproxy.tapes.encrypted import CHUNK, SIZE, TAG, Kind
from tapeproxy.tapes.errors import LockedTapeError, TapeFormatError

KEY = Secret("key", bytes(range(32)))
PHRASE = Secret("passphrase", b"correct horse battery staple")
CHEAP = 10


def giving(secret: Secret) -> Ask:
    return lambda _kind, _source: secret


def locked(plain: bytes, secret: Secret = KEY) -> bytes:
    return b"".join(encrypt(iter([plain]), secret, cost=CHEAP))


def opened(data: bytes, secret: Secret = KEY, step: int = 0) -> bytes:
    pieces = [data[at : at + step] for at in range(0, len(data), step)] if step else [data]
    return b"".join(decrypt(iter(pieces), "t", giving(secret)))


@pytest.mark.parametrize("secret", [KEY, PHRASE])
@pytest.mark.parametrize("step", [0, 1, 50, SIZE])
def test_round_trip(secret: Secret, step: int) -> None:
    plain = written()
    data = locked(plain, secret)
    assert opened(data, secret, step) == plain
    assert locked(plain, secret) != data, "each file has a salt of its own"
    assert plain[-40:] not in data


def test_the_tape_reads_as_the_plain_one(tmp_path: Path) -> None:
    plain, path = tmp_path / "a", tmp_path / "b"
    plain.write_bytes(written())
    path.write_bytes(locked(written(), PHRASE))
    assert (is_locked(plain), is_locked(path)) == (False, True)
    asked: list[tuple[Kind, str]] = []

    def ask(kind: Kind, source: str) -> Secret:
        asked.append((kind, source))
        return PHRASE

    assert list(read_entries(path, ask=ask)) == list(read_entries(plain, ask=ask_nobody))
    assert asked == [("passphrase", str(path))], "once, and not for a plain tape"
    assert load(path, ask)[1] == load(plain)[1]
    assert load(path, ask)[1].canonical


def test_without_the_secret(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(locked(written()))
    with pytest.raises(LockedTapeError, match=r"b: the tape is encrypted, and its key file is needed(?s:.*)--key-file"):
        list(read_entries(path, ask=ask_nobody))
    with pytest.raises(LockedTapeError, match="b: this key is not the one"):
        list(read_entries(path, ask=giving(Secret("key", bytes(32)))))


def test_what_comes_before_a_change_is_given_out(tmp_path: Path) -> None:
    path = tmp_path / "b"
    noise = os.urandom(3 * CHUNK)
    path.write_bytes(locked(written([*RECORDS[:4]]) + noise))
    assert next(read_entries(path, ask=giving(KEY))).index == 0
    data = locked(noise)
    taken: list[bytes] = []
    given = decrypt(iter([data[: SIZE + CHUNK + TAG], bytes(1000)]), "t", giving(KEY))
    with pytest.raises(TapeFormatError, match="changed or cut off"):
        taken += given
    assert b"".join(taken) == noise[:CHUNK]


def test_every_flipped_byte_and_every_cut_of_a_passphrase_tape() -> None:
    data = locked(written(RECORDS[:1]), PHRASE)
    # A key for each cost that a flip in the header may ask for would take minutes; keys.master is what is slow.
    for at in (*range(10), *range(11, len(data))):
        changed = bytearray(data)
        changed[at] ^= 0x41
        with pytest.raises((TapeFormatError, LockedTapeError)):
            opened(bytes(changed), PHRASE)
    for end in range(len(data)):
        with pytest.raises((TapeFormatError, LockedTapeError)):
            opened(data[:end], PHRASE)


def test_it_streams() -> None:
    """No more than a piece and a chunk is held, whatever the length."""
    pulled = 0

    def source() -> Iterator[bytes]:
        nonlocal pulled
        for _ in range(20):
            pulled += 1
            yield bytes(CHUNK)

    pieces = encrypt(source(), KEY)
    assert len(next(pieces)) == SIZE
    assert pulled == 0
    next(pieces)
    assert pulled == 2
    opened_pieces = decrypt(encrypt(source(), KEY), "t", giving(KEY))
    pulled = 0
    next(opened_pieces)
    assert pulled <= 4


def test_too_little_memory_is_an_error_of_ours() -> None:
    code = """
import resource
from tapeproxy.proxy.unlocking import Secret
from tapeproxy.tapes.encrypted import Header
resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
Secret("passphrase", b"x").master(Header("passphrase", 18, bytes(32)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "LockedTapeError: the key cannot be made of the passphrase: " in done.stderr
    assert "it takes 256 MiB of memory" in done.stderr


def test_a_plain_tape_pays_nothing_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(written())
    code = """
import sys
from pathlib import Path
import tapeproxy.cli.replay, tapeproxy.cli.verify, tapeproxy.cli.show, tapeproxy.proxy.replaying
from tapeproxy.proxy.tapefile import load
load(Path(sys.argv[1]))
print("cryptography" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.stdout) == ("", "False\n")
