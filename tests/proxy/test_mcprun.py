"""Which run a wrapped MCP server belongs to, and what the server behind it is told of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapeproxy.proxy.childenv import ChildSettings, child_environment
from tapeproxy.proxy.mcprun import Run, find_run, server_environment
from tapeproxy.shim import INJECT

SETTINGS = ChildSettings("http://127.0.0.1:1", Path("/b"), Path("/c"), "run")
USERS = {"HTTPS_PROXY": "http://corp:3128", "NO_PROXY": "internal", "PATH": "/bin", "TMPDIR": "/mine"}


def test_a_replay_is_known_by_its_variable_and_a_recording_by_the_run() -> None:
    replay = find_run({"TAPEPROXY_RUN": "r", "TAPEPROXY_REPLAY": "1", "HTTP_PROXY": "http://h:1"})
    assert replay[:3] == ("replay", "http://h:1", None)
    assert find_run({"TAPEPROXY_RUN": "r", "TAPEPROXY_SIDECAR": "/s"})[:3] == ("record", "", Path("/s"))
    assert find_run({"TAPEPROXY_RUN": "r"})[:3] == ("record", "", None)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_client_that_hands_on_no_variables_is_found_above() -> None:
    code = (
        "import os; from tapeproxy.proxy.mcprun import find_run; run = find_run(os.environ); print(run.mode, run.proxy)"
    )
    middle = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], env={{}}, check=True)"
    given = {"TAPEPROXY_RUN": "r", "TAPEPROXY_REPLAY": "1", "HTTP_PROXY": "http://above:1"}
    done = subprocess.run([sys.executable, "-c", middle], env=given, capture_output=True, text=True, check=True)
    assert done.stdout == "replay http://above:1\n"


def test_the_server_is_outside_of_the_run() -> None:
    shim = {
        "PYTHONPATH": f"{INJECT}{os.pathsep}/lib",
        "PYTHONHASHSEED": "1",
        "TMPDIR": "/t",
        "TAPEPROXY_MODE": "record",
    }
    ours = child_environment(USERS, SETTINGS) | shim
    assert server_environment(ours, Run("record", variables=ours)) == USERS | {"PYTHONPATH": "/lib"}


def test_what_the_client_says_itself_stays() -> None:
    ours = child_environment(USERS, SETTINGS) | {"PYTHONPATH": str(INJECT)}
    given = {"HTTPS_PROXY": "http://clients-own:1", "NO_PROXY": ours["NO_PROXY"], "PYTHONPATH": str(INJECT), "KEY": "k"}
    told = server_environment(given, Run("record", variables=ours))
    assert told == {"HTTPS_PROXY": "http://clients-own:1", "NO_PROXY": "internal", "KEY": "k"}


def test_variables_that_are_none_of_ours_are_no_harm() -> None:
    for text in ("[", "[1]", json.dumps({"HTTPS_PROXY": 1})):
        assert server_environment({"A": "b"}, Run("record", variables={"TAPEPROXY_BEFORE": text})) == {"A": "b"}
