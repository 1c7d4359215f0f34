"""What `env` prints without a proxy; with one it is tested as a whole program."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tapeproxy.cli.env import command
from tapeproxy.proxy.childenv import OURS, ChildSettings, child_environment
from tapeproxy.proxy.processes import RUN_VARIABLE
from tapeproxy.proxy.shimming import NODE_OPTION
from tapeproxy.proxy.state import NoProxyError, State, state_path, write_state
from tapeproxy.shim import INJECT

CLEAN: dict[str, str | None] = {name: None for name in os.environ if name != "PATH"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which no proxy runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def env(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(command, words, standalone_mode=False, env=CLEAN | variables)


def unset(*words: str, **variables: str) -> list[str]:
    result = env("--unset", *words, **variables)
    assert (result.exception, result.stderr) == (None, "")
    return result.stdout.splitlines()


def test_the_fixed_names_are_those_of_every_child() -> None:
    settings = ChildSettings("http://127.0.0.1:1", Path("/b"), Path("/c"), "run")
    assert set(OURS) == child_environment({}, settings).keys()


def test_what_every_child_gets_is_unset_without_a_proxy(folder: Path) -> None:
    assert unset() == [f"unset {name};" for name in sorted(OURS)]
    assert unset("--shell", "fish")[0] == "set -e ALL_PROXY;"
    assert [*folder.iterdir()] == []


def test_a_shell_that_has_our_variables_loses_them_all_and_no_other() -> None:
    theirs = {
        "TAPEPROXY_HOME": "/h",
        "NPM_CONFIG_CAFILE": "/h/bundle-1.pem",
        "NIX_SSL_CERT_FILE": "/etc/ssl/ca.pem",
        "TAPEPROXY_MODE": "record",
        "TMPDIR": "/tmp/tapeproxy-x",
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": str(INJECT),
        "LANG": "C",
    }
    lines = unset(**theirs, **{RUN_VARIABLE: "r"})
    gone = {"NPM_CONFIG_CAFILE", "TAPEPROXY_MODE", "TAPEPROXY_LANE", "TMPDIR", "PYTHONHASHSEED", "PYTHONPATH"}
    assert lines == [f"unset {name};" for name in sorted({*OURS, *gone})]
    assert unset(**theirs) == unset()


def test_a_pythonpath_of_ones_own_is_given_back() -> None:
    lines = unset(PYTHONPATH=os.pathsep.join((str(INJECT), "/mine", "/yours")), **{RUN_VARIABLE: "r"})
    assert "unset PYTHONPATH;" not in lines
    assert lines[-1] == f"export PYTHONPATH='/mine{os.pathsep}/yours';"


def test_node_options_of_ones_own_are_given_back() -> None:
    mine = "--max-old-space-size=4096"
    assert unset(NODE_OPTIONS=f"{NODE_OPTION} {mine}", **{RUN_VARIABLE: "r"})[-1] == f"export NODE_OPTIONS='{mine}';"
    assert "unset NODE_OPTIONS;" in unset(NODE_OPTIONS=NODE_OPTION, **{RUN_VARIABLE: "r"})
    assert "unset NODE_OPTIONS;" not in unset(NODE_OPTIONS=mine)


def test_without_a_proxy_what_follows_is_stopped(folder: Path) -> None:
    result = env("--wait", "0")
    assert isinstance(result.exception, NoProxyError)
    assert str(result.exception).startswith(f"no proxy is running here (in {folder})")
    assert result.stdout == "false\n"


def test_a_state_that_cannot_be_read_stops_too(folder: Path) -> None:
    state_path(folder).parent.mkdir(parents=True, exist_ok=True)
    state_path(folder).write_text("{")
    result = env()
    assert isinstance(result.exception, NoProxyError)
    assert result.stdout == "false\n"


def test_a_running_proxys_variables_are_exported() -> None:
    write_state(State(os.getpid(), "record", "t.jsonl.gz", 1, {"HTTPS_PROXY": "http://127.0.0.1:1"}, ("SSL_CERT_DIR",)))
    assert env().stdout == "export HTTPS_PROXY='http://127.0.0.1:1';\nunset SSL_CERT_DIR;\n"
