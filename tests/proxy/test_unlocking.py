import os
from pathlib import Path

import pytest

from tapeproxy.proxy.unlocking import (
    KEY_FILE,
    PASSPHRASE,
    PASSPHRASE_FILE,
    Secret,
    ask_nobody,
    environment_secret,
    passphrase,
    read_descriptor,
    read_key,
)
from tapeproxy.tapes.errors import LockedTapeError, UsageError


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (b"a b", b"a b"),
        (b"a\n", b"a"),
        (b"a\r\n", b"a"),
        (b"a\n\n", b"a\n"),
        (b" a ", b" a "),
        ("é".encode(), "é".encode()),
    ],
)
def test_a_passphrase_is_its_bytes_without_one_newline(given: bytes, value: bytes) -> None:
    assert passphrase(given, "x").value == value


@pytest.mark.parametrize("given", [b"", b"\n", b"\r\n"])
def test_no_empty_passphrase(given: bytes) -> None:
    with pytest.raises(UsageError, match="x: the passphrase is empty"):
        passphrase(given, "x")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (bytes(range(32)), bytes(range(32))),
        (bytes(range(32)).hex().encode(), bytes(range(32))),
        (bytes(range(32)).hex().upper().encode() + b"\r\n", bytes(range(32))),
        (b"", None),
        (bytes(31), None),
        (bytes(33), None),
        (b"a" * 63, None),
        (b"g" * 64, None),
    ],
)
def test_key_files(tmp_path: Path, data: bytes, value: bytes | None) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    if value is None:
        with pytest.raises(UsageError, match="a key file holds 32 bytes, or 64 hex digits"):
            read_key(path)
    else:
        assert read_key(path) == Secret("key", value, str(path))


def test_what_the_environment_names(tmp_path: Path) -> None:
    key, words = tmp_path / "key", tmp_path / "words"
    key.write_bytes(bytes(32))
    words.write_bytes(b"from a file\n")
    everything = {PASSPHRASE: "typed", PASSPHRASE_FILE: str(words), KEY_FILE: str(key)}
    found = environment_secret("passphrase", everything)
    assert found is not None
    assert found.value == b"typed"
    found = environment_secret("passphrase", {PASSPHRASE: "", PASSPHRASE_FILE: str(words)})
    assert found is not None
    assert found.value == b"from a file"
    found = environment_secret("key", everything)
    assert found is not None
    assert found.value == bytes(32)
    assert environment_secret("key", {PASSPHRASE: "typed"}) is None
    assert environment_secret("passphrase", {KEY_FILE: str(key)}) is None
    with pytest.raises(UsageError, match="cannot be read: no such file"):
        environment_secret("key", {KEY_FILE: str(tmp_path / "absent")})


def test_a_descriptor_is_read_to_its_end_and_closed() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"secret words\n")
    os.close(writing)
    assert read_descriptor(reading).value == b"secret words"
    with pytest.raises(UsageError, match=f"cannot be read from descriptor {reading}: bad file descriptor"):
        read_descriptor(reading)


@pytest.mark.parametrize("number", [1, 2])
def test_output_is_not_read(number: int) -> None:
    with pytest.raises(UsageError, match=f"descriptor {number} is for output"):
        read_descriptor(number)


def test_what_is_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * 100_000)
    with pytest.raises(UsageError, match="more than 65536 bytes"):
        environment_secret("passphrase", {PASSPHRASE_FILE: str(path)})
    with pytest.raises(UsageError, match="cannot be read"):
        read_key(tmp_path)


def test_nobody_has_none() -> None:
    with pytest.raises(LockedTapeError, match="t: the tape is encrypted, and its passphrase is needed"):
        ask_nobody("passphrase", "t")


def test_no_secret_in_a_repr() -> None:
    assert "swordfish" not in repr(passphrase(b"swordfish", "x"))
