"""PEM files: what a whole one is, what damage is noticed, and that writing leaves all or nothing."""

import stat
from pathlib import Path

import pytest

from tapeproxy.proxy.leaves import new_authority
from tapeproxy.proxy.pemfiles import (
    CaError,
    create,
    parse_private,
    passing_file,
    read,
    read_if_there,
    read_roots,
    replace,
    restrict,
    version,
)

NAME = Path("ca.pem")
WHOLE = new_authority()


def test_a_whole_file_gives_its_certificate() -> None:
    private = parse_private(NAME, WHOLE)
    assert private.text == WHOLE
    assert private.certificate == WHOLE[WHOLE.index(b"-----BEGIN CERT") :]
    assert private.der[:2] == b"\x30\x82"


def test_line_ends_and_text_around_the_blocks_do_not_matter() -> None:
    assert (
        parse_private(NAME, b"mine\n" + WHOLE.replace(b"\n", b"\r\n") + b"\nend").der == parse_private(NAME, WHOLE).der
    )


def test_every_truncation_is_damage() -> None:
    for cut in range(len(WHOLE) - 1):
        with pytest.raises(CaError, match=r"ca\.pem: .*damaged"):
            parse_private(NAME, WHOLE[:cut])


CERTIFICATE = WHOLE[WHOLE.index(b"-----BEGIN CERT") :]
KEY = WHOLE.removesuffix(CERTIFICATE)


@pytest.mark.parametrize(
    "text",
    [
        b"not PEM at all",
        KEY,
        CERTIFICATE,
        KEY.replace(b"PRIVATE", b"PUBLIC") + CERTIFICATE,
        KEY + b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        KEY + b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
        KEY + b"-----BEGIN CERTIFICATE-----\nMAUA\n-----END CERTIFICATE-----\n",
        KEY + b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n",
    ],
)
def test_what_is_not_a_key_with_a_certificate(text: bytes) -> None:
    with pytest.raises(CaError) as caught:
        parse_private(NAME, text)
    assert caught.value.where == "ca.pem"
    assert "put back a good copy" in caught.value.fix


def test_create_makes_a_private_file_in_a_private_directory(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    create(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    create(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(path.parent.iterdir()) == [path], "no draft is left"


def test_replace_makes_a_public_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace(path, b"one")
    replace(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", [create, replace])
def test_a_failed_write_is_one_clear_line_and_leaves_nothing(tmp_path: Path, write: object) -> None:
    assert callable(write)
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(CaError, match="cannot be written: ") as caught:
        write(blocked / "below", b"data")
    assert "TAPEPROXY_HOME" in caught.value.fix
    assert list(tmp_path.iterdir()) == [blocked]


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_if_there(path) is None
    for reader in (read, read_roots, version):
        with pytest.raises(CaError, match="cannot be read: no such file"):
            reader(path)
    for reader in (read, read_if_there, read_roots):
        with pytest.raises(CaError, match="cannot be read: is a directory"):
            reader(tmp_path)
    path.write_bytes(b"no certificates")
    assert read(path) == read_if_there(path) == b"no certificates"
    with pytest.raises(CaError, match="holds none in PEM form"):
        read_roots(path)


def test_version_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = version(path)
    assert version(path) == first
    path.write_bytes(b"longer")
    assert version(path) != first


def test_restrict_takes_the_file_away_from_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o644)
    restrict(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    restrict(tmp_path / "absent")


def test_a_passing_file_can_be_read_while_it_lasts() -> None:
    with passing_file(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
    assert not Path(path).exists()
