"""Confined children: a table of sockets in real processes, and what is said where Landlock is missing."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from traps import CALLS, Trap, linux

from tapeproxy.proxy import landlock

pytestmark = linux


@pytest.fixture
def available() -> None:
    if reason := landlock.refusal():
        pytest.skip(f"no Landlock here: {reason}")


@pytest.fixture
def open_port() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


@pytest.fixture
def closed_port() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


SOCKETS = """
import ctypes, errno, json, os, socket, subprocess, sys
OPEN, CLOSED = (("127.0.0.1", int(word)) for word in sys.argv[1:3])
def connect(address, *kind):
    with socket.socket(*kind) as sock:
        sock.settimeout(5)
        sock.connect(address)
def send(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", address)
def serve():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1]
def unix():
    for sock in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        sock.close()
def fast_open():
    with socket.socket() as sock:
        sock.sendto(b"x", 0x20000000, CLOSED)
def io_uring():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(425), 0, None) < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")
def child():
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    if subprocess.run([sys.executable, "-I", "-c", code, sys.argv[2]], stderr=subprocess.DEVNULL).returncode:
        raise PermissionError(errno.EACCES, "of the child")
WAYS = {
    "tcp, allowed": lambda: connect(OPEN),
    "tcp": lambda: connect(CLOSED),
    "tcp over ipv6": lambda: connect(("::ffff:127.0.0.1", CLOSED[1]), socket.AF_INET6),
    "udp": lambda: send(CLOSED),
    "udp, allowed port": lambda: send(OPEN),
    "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
    "mptcp": lambda: connect(CLOSED, socket.AF_INET, socket.SOCK_STREAM, 262),
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    "tcp fast open": fast_open,
    "io_uring": io_uring,
    "child": child,
    "unix": unix,
    "interfaces": socket.if_nameindex,
    "serve": serve,
    "localhost": lambda: socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM),
}
def end(function):
    try:
        function()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "went"
print(json.dumps({name: end(function) for name, function in WAYS.items()}))
"""


def ends(confine: Callable[[], None] | None, open_port: int, closed_port: int) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", SOCKETS, str(open_port), str(closed_port)],
        preexec_fn=confine,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    ended: dict[str, str] = json.loads(done.stdout)
    return ended


HARMLESS = {"tcp, allowed", "unix", "interfaces", "serve", "localhost"}
FILTERED = {
    "udp": "EACCES",
    "udp, allowed port": "EACCES",
    "raw": "EACCES",
    "mptcp": "EPROTONOSUPPORT",
    "vsock": "EAFNOSUPPORT",
    "tcp fast open": errno.errorcode[errno.EOPNOTSUPP],
    "io_uring": "ENOSYS",
}


@pytest.mark.usefixtures("available")
def test_a_confined_program_reaches_the_allowed_port_and_no_other(open_port: Trap, closed_port: Trap) -> None:
    confine = landlock.confinement([open_port.port])
    for _ in range(2):  # one step is good for many children
        ended = ends(confine, open_port.port, closed_port.port)
        expected = dict.fromkeys(HARMLESS, "went") | dict.fromkeys(("tcp", "child"), "EACCES")
        expected |= FILTERED if landlock.filters_sockets() else {}
        assert {name: ended[name] for name in expected} == expected
        assert ended["tcp over ipv6"] in ("EACCES", "EAFNOSUPPORT"), "the latter where there is no IPv6"
        assert (open_port.caught(), closed_port.caught()) == (1, 0)


def test_without_it_the_same_program_goes_where_it_likes(open_port: Trap, closed_port: Trap) -> None:
    ended = ends(None, open_port.port, closed_port.port)
    for name in (*HARMLESS, "tcp", "udp", "child"):
        assert ended[name] == "went"
    assert closed_port.caught() >= 3


@pytest.mark.usefixtures("available")
def test_several_ports(open_port: Trap, closed_port: Trap) -> None:
    ended = ends(landlock.confinement([open_port.port, closed_port.port]), open_port.port, closed_port.port)
    assert ended["tcp"] == ended["child"] == "went"


@pytest.mark.usefixtures("available")
def test_it_takes_setuid_programs_power_away() -> None:
    code = "import os; print([line for line in open('/proc/self/status') if line.startswith('NoNewPrivs')])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=landlock.confinement([]),
        capture_output=True,
        text=True,
    )
    assert "1" in done.stdout


@pytest.mark.skipif(not hasattr(os, "uname") or os.uname().machine not in CALLS, reason="no call numbers")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errno.ENOSYS, "this kernel has none"),
        (errno.EOPNOTSUPP, "it is switched off in this kernel"),
        (errno.EPERM, "operation not permitted"),
        (0, "this kernel's (ABI 0) has no rules for TCP; Linux 6.7 has"),
    ],
)
def test_what_a_kernel_without_it_says(error: int, said: str) -> None:
    code = f"import traps; traps.deny({{'landlock_create_ruleset': {error}}})\n"
    code += "from tapeproxy.proxy import landlock; print(landlock.refusal())"
    done = subprocess.run([sys.executable, "-c", code], env=with_tests(), capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == said, done.stderr


def with_tests() -> dict[str, str]:
    """An environment in which the tests' own modules can be imported."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
