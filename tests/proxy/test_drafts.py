from pathlib import Path

import pytest

from tapeproxy.proxy.drafts import drafted
from tapeproxy.tapes.errors import TapeExistsError, TapeWriteError


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with drafted(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        file.write(b", whole")
    assert path.read_bytes() == b"half, whole"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), drafted(tmp_path / "x") as file:
        file.write(b"half")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(TapeExistsError), drafted(path):
        pass
    with pytest.raises(KeyError), drafted(path, force=True) as file:
        file.write(b"new")
        raise KeyError
    assert path.read_bytes() == b"old"
    with drafted(path, force=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_name_that_was_taken_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(TapeExistsError), drafted(path) as file:
        file.write(b"mine")
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TapeWriteError, match="no such file"), drafted(tmp_path / "absent" / "x"):
        pass
