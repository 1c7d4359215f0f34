"""Who is of a run and who owns a port: tables for the parsers, real processes and sockets for the rest."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tapeproxy.proxy.processes import (
    RUN_VARIABLE,
    RunProcesses,
    descendants,
    listeners,
    listening,
    listening_by_netlink,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# Listens on a port of its own, says so with its pid, and ends when its input does.
LISTENER = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(os.getpid(), server.getsockname()[1], flush=True)
sys.stdin.read()
"""

# The same as a daemon: the process that was started ends first, and only then does the grandchild say anything.
DAEMON = (
    """
import os
gone, alive = os.pipe()
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.close(alive)
os.read(gone, 1)
"""
    + LISTENER
)


@contextlib.contextmanager
def started(program: str, env: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Run a program of the above; gives the listening process's pid and port."""
    with subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, port = map(int, process.stdout.readline().split())
        try:
            yield pid, port
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.stdout.read()  # ends when the last process with this pipe does


RUN = f"test-{os.getpid()}"  # several suites may run on one machine


def of_run() -> dict[str, str]:
    return {**os.environ, RUN_VARIABLE: RUN}


@linux
@pytest.mark.parametrize("program", [LISTENER, DAEMON], ids=["child", "daemon"])
def test_a_marked_process_is_found_and_owns_its_port(program: str) -> None:
    run = RunProcesses(RUN)
    with started(program, of_run()) as (pid, port):
        assert run.pids() == [pid]
        assert run.owns_port(port)
        assert run.owns_port(port), "the remembered answer"
        assert not RunProcesses("another").owns_port(port)
        assert not RunProcesses(RUN[:-1]).owns_port(port), "the marker counts as a whole"
    assert run.pids() == []
    assert not run.owns_port(port), "nothing listens any more"


@linux
def test_a_remembered_port_that_changed_hands_is_looked_up_anew() -> None:
    run = RunProcesses(RUN)
    with started(LISTENER, of_run()) as (_, port):
        assert run.owns_port(port)
    with socket.create_server(("127.0.0.1", port)):
        assert not run.owns_port(port)


@linux
def test_a_no_is_not_remembered() -> None:
    run = RunProcesses(RUN)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not run.owns_port(port)
        server.set_inheritable(True)
        heir = subprocess.Popen(["cat"], env=of_run(), stdin=subprocess.PIPE, close_fds=False)
        with heir:
            assert run.owns_port(port)
            heir.communicate()


@linux
def test_a_descendant_of_the_root_counts_whatever_its_environment() -> None:
    with started(LISTENER, {}) as (pid, port):
        assert RunProcesses(RUN, root=pid).pids() == [pid]
        assert RunProcesses(RUN, root=pid).owns_port(port)
        assert not RunProcesses(RUN).owns_port(port)
        ours = RunProcesses(RUN, root=os.getpid())
        assert pid in ours.pids()
        assert os.getpid() not in ours.pids(), "the calling process never counts"


@linux
def test_a_zombie_is_not_of_the_run() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], env=of_run()) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert RunProcesses(RUN, root=process.pid).pids() == []


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({}, set()),
        ({2: 1}, set()),
        ({5: 1}, {5}),
        ({5: 1, 6: 5, 7: 6, 8: 1, 9: 8}, {5, 6, 7}),
        ({5: 6, 6: 5}, {5, 6}),
    ],
)
def test_descendants(parents: dict[int, int], expected: set[int]) -> None:
    assert descendants(5, parents) == expected


@pytest.mark.skipif(sys.byteorder == "big", reason="the rows are of a little-endian machine")
@pytest.mark.parametrize(
    ("address", "state", "found"),
    [
        ("0100007F", "0A", True),
        ("0101007F", "0A", True),
        ("00000000", "0A", True),
        ("0100007F", "01", False),
        ("0100000A", "0A", False),
        ("00000000000000000000000000000000", "0A", True),
        ("00000000000000000000000001000000", "0A", True),
        ("0000000000000000FFFF00000100007F", "0A", True),
        ("0000000000000000FFFF00000100000A", "0A", False),
        ("B80D0120000000000000000001000000", "0A", False),
    ],
)
def test_rows_of_the_table(address: str, state: str, found: bool) -> None:
    row = f"   0: {address}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 4711 1 0"
    table = b"  sl  local_address rem_address   st\n" + row.encode() + b"\n"
    assert listeners(table, 0x1F90) == ({4711} if found else set())
    assert listeners(table, 0x1F91) == set()


@pytest.mark.parametrize("table", [b"", b"head\n", b"head\n\n", b"head\n 0: 0100007F:1F90 0 0A\n"])
def test_a_table_without_whole_rows_is_empty(table: bytes) -> None:
    assert listeners(table, 0x1F90) == set()


@linux
@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_netlink_and_the_table_agree_on_a_real_socket(host: str, family: socket.AddressFamily) -> None:
    if family == socket.AF_INET6 and not Path("/proc/net/if_inet6").read_text():
        pytest.skip("no IPv6 on this machine")
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        tables = [Path(f"/proc/net/{name}").read_bytes() for name in ("tcp", "tcp6")]
        assert listening(port) == {os.fstat(server.fileno()).st_ino}
        assert set.union(*(listeners(table, port) for table in tables)) == listening(port)
        try:
            direct = listening_by_netlink(port)
        except OSError:
            pytest.skip("this kernel or sandbox has no sock_diag")
        assert direct == listening(port)


def test_elsewhere_it_says_that_it_cannot_tell() -> None:
    program = """
import sys
sys.platform = "darwin"
from tapeproxy.proxy.processes import RunProcesses
run = RunProcesses("x")
print(run.available, run.owns_port(80), run.pids(), run.reason)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False False [] which processes belong to a run can only be seen on Linux")


@linux
def test_here_it_can_tell() -> None:
    assert RunProcesses("x").available
    assert RunProcesses("x").reason == ""
