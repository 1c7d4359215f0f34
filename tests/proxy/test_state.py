"""The state of a folder's proxy: in the user's home, believed only when it is what we write."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tapeproxy.proxy.state import NoProxyError, State, clear_state, read_state, state_path, write_state

GOOD = State(os.getppid(), "record", "t.jsonl.gz", 1, {"HTTPS_PROXY": "http://127.0.0.1:1"}, ("SSL_CERT_DIR",))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_what_was_written_is_read_by_this_user_alone(place: Path) -> None:
    write_state(GOOD)
    assert read_state() == GOOD
    assert state_path().stat().st_mode & 0o777 == 0o600
    assert list(place.iterdir()) == []
    assert state_path(place.parent) != state_path()
    with pytest.raises(NoProxyError, match="running here already"):
        write_state(GOOD)
    clear_state(GOOD.pid + 1)
    assert read_state() == GOOD
    clear_state(GOOD.pid)
    assert read_state() is None


def test_a_file_in_the_folder_is_not_believed(place: Path) -> None:
    (place / ".tapes").mkdir()
    (place / ".tapes" / "proxy.json").write_text(json.dumps({"pid": os.getpid(), "variables": {"LD_PRELOAD": "x"}}))
    assert read_state() is None


def test_what_a_dead_proxy_left_is_removed() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    write_state(State(gone.pid, "record", "t", 1, {}))
    assert read_state() is None
    assert not state_path().exists()


def test_what_a_killed_proxy_left_in_a_container_is_not_another_one() -> None:
    """There the proxy is process 1, before a restart and after it."""
    mine = replace(GOOD, pid=os.getpid())
    write_state(mine)
    write_state(replace(mine, port=2))
    assert read_state() == replace(mine, port=2)
    state_path().write_text(json.dumps(FIELDS | {"pid": 1}))
    found = read_state()
    assert found is not None and found.pid == 1


FIELDS = {"pid": 7, "mode": "record", "tape": "t", "port": 1, "variables": {}, "removed": []}


@pytest.mark.parametrize(
    "change",
    [
        {"pid": 0},
        {"pid": -1},
        {"pid": "7"},
        {"pid": None},
        {"pid": 10**18},
        {"pid": 1.5},
        {"variables": []},
        {"variables": {"A": 1}},
        {"removed": "HOME"},
        {"removed": [1]},
        {"mode": 1},
        {"port": "x"},
    ],
)
def test_a_state_that_we_did_not_write_is_an_error(change: dict[str, object]) -> None:
    state_path().parent.mkdir(parents=True)
    state_path().write_text(json.dumps(FIELDS | change))
    with pytest.raises(NoProxyError, match="cannot be read"):
        read_state()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}"])
def test_nor_is_any_other_file_believed(text: str) -> None:
    state_path().parent.mkdir(parents=True)
    state_path().write_text(text)
    with pytest.raises(NoProxyError, match="cannot be read"):
        read_state()
