"""Going into a network namespace, in processes of their own: as root, as less than root, and where it is refused."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from traps import CALLS, Trap, linux

pytestmark = linux

ENTER = """
import ctypes, errno, os, socket, sys
from tapeproxy.proxy import netns
outside = os.readlink("/proc/self/ns/net")
def end(function):
    try:
        function()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "went"
def report():
    with socket.create_server(("127.0.0.1", 0)) as server:
        inside = end(lambda: socket.create_connection(server.getsockname(), 5).close())
    trap = end(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).close())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        world = end(lambda: sock.sendto(b"x", ("192.0.2.1", 9)))
    names = ",".join(name for _, name in socket.if_nameindex())
    return f"{inside} {trap} {world} {names} {os.getuid()} {os.getgid()}"
"""
ENTERED = "went ECONNREFUSED ENETUNREACH lo"


@pytest.fixture
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


def run(code: str, trap: Trap, *, wrap: Sequence[str] = ()) -> list[str]:
    """The lines that a program printed which may end up in a namespace of its own."""
    done = subprocess.run(
        [*wrap, sys.executable, "-c", ENTER + code, str(trap.port)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def entered(lines: list[str]) -> str:
    """The report of a program that got in; skips the test where this machine does not let it."""
    if lines[0]:
        pytest.skip(f"no network namespace here: {lines[0]}")
    return lines[1]


def test_inside_there_is_a_loopback_and_nothing_else(trap: Trap) -> None:
    lines = run("print(netns.enter())\nprint(report())", trap)
    assert entered(lines) == f"{ENTERED} {os.getuid()} {os.getgid()}"


def test_what_is_started_inside_is_inside_whatever_it_is(trap: Trap) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    code = "print(netns.enter(), flush=True)\nos.execv(sys.argv[2], sys.argv[2:])"
    url = f"http://127.0.0.1:{trap.port}/"
    done = subprocess.run(
        [sys.executable, "-c", ENTER + code, str(trap.port), curl, "-sS", "--noproxy", "*", "-m", "5", url],
        capture_output=True,
        text=True,
        timeout=60,
    )
    entered([*done.stdout.splitlines(), ""])
    assert done.returncode == 7, done.stderr  # could not connect
    assert trap.caught() == 0


setpriv = pytest.mark.skipif(
    shutil.which("setpriv") is None or not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="needs setpriv, and root to take rights from",
)


@setpriv
@pytest.mark.parametrize("missing", ["sys_admin", "net_admin"])
def test_root_without_a_right_goes_in_as_a_user(trap: Trap, missing: str) -> None:
    lines = run("print(netns.enter())\nprint(report())", trap, wrap=["setpriv", f"--bounding-set=-{missing}"])
    assert entered(lines) == f"{ENTERED} 0 0"


AS_NOBODY = """
import encodings.idna, fcntl, struct
try:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
except PermissionError:
    sys.exit(print("this root may not become another user"))
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as after an exec: /proc/self is ours again
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to become another")
def test_somebody_without_rights_goes_in_too(trap: Trap) -> None:
    lines = run(AS_NOBODY + "print(netns.enter())\nprint(report())", trap)
    assert entered(lines) == f"{ENTERED} 65534 65534"


REFUSED = """
said = netns.enter()
assert os.readlink("/proc/self/ns/net") == outside, "nothing has changed"
print(said)
print(report())
"""


@pytest.mark.skipif(not hasattr(os, "uname") or os.uname().machine not in CALLS, reason="no call numbers")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errno.EPERM, "operation not permitted"),
        (errno.EINVAL, "invalid argument"),
        (errno.ENOSPC, "their number is limited"),
    ],
)
def test_where_it_is_refused_nothing_has_changed(trap: Trap, error: int, said: str) -> None:
    lines = run(f"import traps; traps.deny({{'unshare': {error}}})" + REFUSED, trap)
    assert lines[0].startswith(said)
    assert lines[1].startswith("went went ")


@setpriv
def test_a_user_namespace_that_is_worth_nothing_is_not_entered(trap: Trap) -> None:
    """Without the right to map root (CAP_SETFCAP) unshare works and the map is refused, as AppArmor has it."""
    wrap = ["setpriv", "--bounding-set=-sys_admin,-setfcap"]
    lines = run(REFUSED, trap, wrap=wrap)
    assert lines[0].startswith("operation not permitted")
    assert lines[1].startswith("went went ")


def test_a_second_thread_is_a_reason_not_to(trap: Trap) -> None:
    code = "import threading\ndone = threading.Event()\nthreading.Thread(target=done.wait).start()"
    lines = run(code + REFUSED + "done.set()", trap)
    assert lines == ["this process already has 2 threads", lines[1]]
    assert lines[1].startswith("went went ")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("pass", 0),
        ("os.rmdir('/nowhere')", errno.ENOENT),
        ("1 // 0", 255),
        ("os.kill(os.getpid(), 9)", 255),
    ],
)
def test_an_attempt_tells_how_it_went(trap: Trap, step: str, code: int) -> None:
    assert run(f"def step(): {step}\nprint(netns.attempt(step))", trap) == [str(code)]
