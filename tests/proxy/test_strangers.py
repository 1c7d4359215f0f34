"""Who made a request without a lane: real processes with real connections."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from noderuns import node

from tapeproxy.proxy.processes import RUN_VARIABLE, RunProcesses
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.shim import INJECT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

CLIENT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"


@contextlib.contextmanager
def client(*argv: str, env: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """A process that has connected to us: its pid and its connection's port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [*argv, CLIENT, str(server.getsockname()[1])]
        with subprocess.Popen(words, env=dict(env), stdin=subprocess.PIPE) as process:
            connection, (_, port) = server.accept()
            with connection:
                yield process.pid, port
            process.communicate()


RUN = {RUN_VARIABLE: "ab"}


@pytest.mark.parametrize(
    ("option", "env", "how"),
    [
        ("-I", RUN | {"PYTHONPATH": str(INJECT)}, "started with -I"),
        ("-u", {}, "started with an environment of its own"),
        ("-u", RUN | {"PYTHONPATH": str(INJECT)}, "it said nothing"),
    ],
)
def test_a_python_without_the_shim(option: str, env: dict[str, str], how: str) -> None:
    with client(sys.executable, option, "-c", env=env) as (pid, port):
        strangers = Strangers(RunProcesses("ab"))
        found = strangers.meet(port, [])
        assert found is not None
        assert (found["what"], found["data"]["pid"], found["data"]["how"]) == ("python-without-shim", pid, how)
        assert found["text"].startswith(sys.executable)
        assert strangers.meet(port, []) is None, "once is enough"


def test_a_python_with_the_shim_whose_client_we_do_not_know() -> None:
    with client(sys.executable, "-c", env=RUN) as (pid, port):
        found = Strangers(RunProcesses("ab")).meet(port, [pid])
        assert found is not None
        assert found["what"] == "request-without-lane"


def test_what_is_no_python_is_nothing_to_tell() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}; read line"
        with subprocess.Popen([bash, "-c", script], stdin=subprocess.PIPE) as process:
            connection, (_, port) = server.accept()
            with connection:
                assert RunProcesses("ab").owner(port) == process.pid
                assert Strangers(RunProcesses("ab")).meet(port, []) is None
            process.communicate()


@pytest.mark.parametrize("wanted", [True, False])
def test_a_node_without_the_shim_counts_where_it_should_have_it(wanted: bool) -> None:
    code = "require('net').connect(process.argv[1], '127.0.0.1').on('data', process.exit)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = [node(), "-e", code, str(server.getsockname()[1])]
        with subprocess.Popen(argv, env=RUN):
            connection, (_, port) = server.accept()
            found = Strangers(RunProcesses("ab"), node=wanted).meet(port, [])
            connection.sendall(b"go")
            connection.close()
    told = found and (found["what"], found["data"]["how"])
    assert told == (("node-without-shim", "started with an environment of its own") if wanted else None)


def test_a_port_of_nobody() -> None:
    assert Strangers(RunProcesses("ab")).meet(0, []) is None
    with socket.create_server(("127.0.0.1", 0)) as unused:
        assert RunProcesses("ab").owner(unused.getsockname()[1]) is None
    assert os.getpid() not in RunProcesses("ab").pids()
