"""Which guard is in force and what gets past it: every way out that we know, against a listening trap.

The kernel's guards are tried without the shim, because each has to hold alone. The audit hook is tried alone too, and
the table says what it does not see.
"""

import asyncio
import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from shimruns import SOAK_PYTHON, environment, read_sidecar
from traps import CALLS, Trap, linux

from tapeproxy.proxy import landlock
from tapeproxy.proxy.guard import Guard, GuardChoice, GuardPlan, HostPort, describe, establish
from tapeproxy.tapes.errors import UsageError

# --- the matrix ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A program that tries to reach the port in its last argument, or the URL. `hooked`: the audit hook sees it."""

    argv: Sequence[str]
    hooked: bool = False
    host: str = "127.0.0.1"
    url: bool = False

    def argv_to(self, port: int) -> list[str]:
        """The command line that tries this port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return [*self.argv, f"http://{host}:{port}/" if self.url else str(port)]


def python(code: str, *options: str, hooked: bool = True, host: str = "127.0.0.1", by: str = sys.executable) -> Way:
    text = f"import socket, sys\nA = ({host!r}, int(sys.argv[1]))\n{code}"
    return Way([by, *options, "-c", text], hooked, host)


CTYPES = """
import ctypes, struct
libc = ctypes.CDLL(None)
address = struct.pack("=H", 2) + A[1].to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
libc.connect(libc.socket(2, 1, 0), address, 16)
"""
STREAMS = "async def main(): await asyncio.open_connection(*A)"
SOCK_CONNECT = """
async def main():
    sock = socket.socket()
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, A)
"""
CHILD = """
import subprocess
code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
subprocess.run([sys.executable, "-c", code, sys.argv[1]])
"""
DATAGRAMS = (
    "async def main():\n    loop = asyncio.get_running_loop()\n"
    + """
    way, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=A)
    way.sendto(b"x")
"""
)
PYCURL = """
import pycurl
curl = pycurl.Curl()
for option, value in ((curl.URL, f"http://127.0.0.1:{A[1]}/"), (curl.NOPROXY, "*"), (curl.TIMEOUT_MS, 500)):
    curl.setopt(option, value)
curl.perform()
"""
NODE_TCP = "require('net').connect(+process.argv[1], '127.0.0.1').on('connect', () => process.exit(0))"
NODE_CHILD = f"import subprocess; subprocess.run(['node', '-e', {NODE_TCP!r}, sys.argv[1]])"
NODE_UDP = "require('dgram').createSocket('udp4').send('x', +process.argv[1], '127.0.0.1', () => process.exit(0))"

WAYS = {
    "socket.connect": python("socket.socket().connect(A)"),
    "connect_ex": python("socket.socket().connect_ex(A)"),
    "create_connection": python("socket.create_connection(A)"),
    "_socket": python("import _socket; _socket.socket(2, 1).connect(A)"),
    "sendto": python("socket.socket(2, 2).sendto(b'x', A)"),
    "sendmsg": python("socket.socket(2, 2).sendmsg([b'x'], [], 0, A)"),
    "asyncio": python(f"import asyncio\n{STREAMS}\nasyncio.run(main())"),
    "asyncio sock_connect": python(f"import asyncio\n{SOCK_CONNECT}\nasyncio.run(main())"),
    "asyncio udp": python(f"import asyncio\n{DATAGRAMS}\nasyncio.run(main())"),
    "fast open": python("socket.socket().sendto(b'x', socket.MSG_FASTOPEN, A)"),
    "ipv6": python("socket.create_connection(A)", host="::1"),
    "ipv6 udp": python("socket.socket(socket.AF_INET6, 2).sendto(b'x', A)", host="::1"),
    "ipv6 of ipv4": python("socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', A[1]))"),
    "uvloop": python(f"import asyncio, uvloop\n{STREAMS}\nuvloop.run(main())"),
    "python child": python(CHILD),
    "python -I": python("socket.create_connection(A)", "-I", hooked=False),
    "python -I udp": python("socket.socket(2, 2).sendto(b'x', A)", "-I", hooked=False),
    "python -S ipv6": python("socket.create_connection(A)", "-S", hooked=False, host="::1"),
    "pycurl": python(PYCURL, hooked=False, by=str(SOAK_PYTHON)),
    "ctypes": python(CTYPES, hooked=False),
    "curl": Way(["curl", "-sS", "-m", "0.5", "--noproxy", "*", "--url"], url=True),
    "curl ipv6": Way(["curl", "-gsS", "-m", "0.5", "--noproxy", "*", "--url"], url=True, host="::1"),
    "shell udp": Way(["bash", "-c", 'echo x > "/dev/udp/127.0.0.1/$0"']),
    "node": Way(["node", "-e", NODE_TCP]),
    "node child": python(NODE_CHILD, hooked=False),
    "node udp": Way(["node", "-e", NODE_UDP]),
}
UVLOOP = importlib.util.find_spec("uvloop")


def ipv6() -> bool:
    """Whether there is a loopback of IPv6 here."""
    try:
        Trap("::1").close()
    except OSError:
        return False
    return True


NEEDS = {"uvloop": UVLOOP is not None, "node child": shutil.which("node")}
INSTALLED = {
    name: way
    for name, way in WAYS.items()
    if shutil.which(way.argv[0]) and NEEDS.get(name, True) and (way.host != "::1" or ipv6())
}
LIBRARIES = str(Path(UVLOOP.origin).parents[1]) if UVLOOP is not None and UVLOOP.origin else ""

LAUNCHER = """
import json, subprocess, sys
from tapeproxy.proxy.guard import describe, establish
from tapeproxy.tapes.errors import UsageError
level, ways, env = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
try:
    plan = establish(level)
except UsageError as error:
    print(json.dumps([str(error), ""]))
    sys.exit()
confine = plan.confinement(1)
for argv in ways:
    subprocess.run(argv, env={**env, **plan.variables(env)}, preexec_fn=confine, capture_output=True)
print(json.dumps([describe(plan), plan.level]))
"""


def launch(code: str, *arguments: str, wrap: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a program of ours that can import the tests' modules too."""
    done = subprocess.run(
        [*wrap, sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


def reached(level: GuardChoice, env: Mapping[str, str], *, wrap: Sequence[str] = ()) -> set[str]:
    """Try every way out under a guard and give the names of those that got through; skips where it can't be had."""
    traps = {name: Trap(way.host) for name, way in INSTALLED.items()}
    try:
        ways = [way.argv_to(traps[name].port) for name, way in INSTALLED.items()]
        line, had = json.loads(launch(LAUNCHER, level, json.dumps(ways), json.dumps(env), wrap=wrap).stdout)
        print(line)
        if not had or (level == "auto" and had == "audit"):
            pytest.skip(line)
        return {name for name, trap in traps.items() if trap.caught()}
    finally:
        for trap in traps.values():
            trap.close()


def bare() -> dict[str, str]:
    return environment("bare", extra={"PYTHONPATH": LIBRARIES})


@linux
def test_without_a_guard_every_way_leads_out() -> None:
    assert reached("none", bare()) == set(INSTALLED)


@linux
@pytest.mark.parametrize("level", ["auto", "namespace", "landlock"])
def test_no_way_leads_out_under_the_kernel_s_guards(level: GuardChoice) -> None:
    if level == "landlock" and not landlock.filters_sockets():
        pytest.skip("UDP is not contained on this machine")
    assert reached(level, bare()) == set()


@linux
@pytest.mark.skipif(
    shutil.which("setpriv") is None or not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="needs setpriv, and root to take rights from",
)
def test_nor_does_one_where_root_has_no_rights() -> None:
    assert reached("namespace", bare(), wrap=["setpriv", "--bounding-set=-sys_admin"]) == set()


@linux
def test_what_the_audit_hook_alone_holds_and_what_it_does_not(tmp_path: Path) -> None:
    env = environment("replay", sidecar=tmp_path)
    env["PYTHONPATH"] += os.pathsep + LIBRARIES
    missed = {name for name, way in INSTALLED.items() if not way.hooked}
    print("the audit hook alone lets through:", ", ".join(sorted(missed)))
    assert reached("audit", env) == missed
    violations = [line for line in read_sidecar(tmp_path) if line["k"] == "violation"]
    assert len(violations) == len(INSTALLED) - len(missed)
    assert all(line["where"].startswith("<string>:") for line in violations)


# --- which guard -----------------------------------------------------------------------------------------------------

CHOOSE = """
import sys, traps
from tapeproxy.proxy.guard import HostPort, describe, establish
traps.deny({name: int(error) for name, error in (word.split("=") for word in sys.argv[2:])})
print(describe(establish("auto", [HostPort.parse(word) for word in sys.argv[1].split()])))
"""
EPERM = errno.EPERM
denying = pytest.mark.skipif(not hasattr(os, "uname") or os.uname().machine not in CALLS, reason="no call numbers")


@linux
@denying
def test_where_the_namespace_is_refused_it_is_landlock() -> None:
    if reason := landlock.refusal():
        pytest.skip(f"no Landlock here: {reason}")
    line = launch(CHOOSE, "", f"unshare={EPERM}").stdout
    assert line.startswith("guard: Landlock: TCP to the proxy's port only, whatever the host, and no UDP (no network ")
    assert line.startswith("no network namespace: operation not permitted", line.index("(") + 1)


@linux
@denying
def test_where_both_are_refused_it_is_the_audit_hook() -> None:
    line = launch(CHOOSE, "", f"unshare={EPERM}", f"landlock_create_ruleset={errno.ENOSYS}").stdout
    expected = (
        "guard: audit hook only: programs that are not Python are not contained "
        "(no network namespace: operation not permitted"
    )
    assert line.startswith(expected)
    assert line.endswith("; no Landlock: this kernel has none)\n")


@linux
def test_what_is_outside_rules_the_namespace_out() -> None:
    plan = establish("auto", [HostPort("db.example", 5432)])
    assert plan.level is (Guard.AUDIT if landlock.refusal() else Guard.LANDLOCK)
    assert plan.reason.startswith("no network namespace: --allow needs the network outside")


@pytest.mark.parametrize("level", ["audit", "none"])
def test_a_chosen_level_is_taken_without_a_reason(level: GuardChoice) -> None:
    assert replace(establish(level), outside=frozenset()) == GuardPlan(Guard(level))


def test_a_chosen_level_that_cannot_be_had_is_an_error() -> None:
    with pytest.raises(UsageError, match="--guard namespace cannot be had: no network namespace: --allow needs"):
        establish("namespace", [HostPort("127.0.0.1", 1)])


DATABASE = HostPort("db.example", 5432)
CACHE = HostPort("127.0.0.1", 6379)


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (GuardPlan(Guard.NAMESPACE), "guard: network namespace"),
        (GuardPlan(Guard.NONE), "guard: none: nothing keeps this replay from the network"),
        (
            GuardPlan(Guard.AUDIT, "no Landlock: why", (DATABASE, CACHE)),
            "guard: audit hook only, which may reach db.example:5432 and 127.0.0.1:6379: "
            "programs that are not Python are not contained (no Landlock: why)",
        ),
    ],
)
def test_the_line_that_is_printed(plan: GuardPlan, line: str) -> None:
    assert describe(plan) == line


@linux
def test_the_line_says_that_landlock_knows_ports_and_not_hosts() -> None:
    udp = "no UDP" if landlock.filters_sockets() else "UDP is not contained on this machine"
    plan = GuardPlan(Guard.LANDLOCK, "", (CACHE,))
    assert describe(plan) == f"guard: Landlock: TCP to the proxy's port and 6379 only, whatever the host, and {udp}"
    plan = GuardPlan(Guard.LANDLOCK, "", (DATABASE, CACHE))
    ports = "the proxy's port, 53, 5432 and 6379"
    assert describe(plan) == f"guard: Landlock: TCP to {ports} only, whatever the host, and {udp}"


# --- what the children are told --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "parent", "expected"),
    [
        (GuardPlan(Guard.NAMESPACE), {}, {"TAPEPROXY_GUARD": "namespace", "TAPEPROXY_ALLOW": ""}),
        (
            GuardPlan(Guard.AUDIT, "", (DATABASE, HostPort("::1", 1))),
            {},
            {"TAPEPROXY_GUARD": "audit", "TAPEPROXY_ALLOW": "db.example:5432,[::1]:1"},
        ),
        (
            GuardPlan(Guard.LANDLOCK, "", (CACHE,)),
            {"RES_OPTIONS": "debug"},
            {"TAPEPROXY_GUARD": "landlock", "TAPEPROXY_ALLOW": "127.0.0.1:6379"},
        ),
        (
            GuardPlan(Guard.LANDLOCK, "", (DATABASE,)),
            {"RES_OPTIONS": "debug"},
            {
                "TAPEPROXY_GUARD": "landlock",
                "TAPEPROXY_ALLOW": "db.example:5432",
                "RES_OPTIONS": "debug use-vc",  # names are asked for over TCP, as UDP is closed
            },
        ),
    ],
)
def test_variables(plan: GuardPlan, parent: dict[str, str], expected: dict[str, str]) -> None:
    assert plan.variables(parent) == expected


@pytest.mark.parametrize("level", [Guard.NAMESPACE, Guard.AUDIT, Guard.NONE])
def test_only_landlock_is_a_step_of_each_child(level: Guard) -> None:
    assert GuardPlan(level).confinement(1) is None


@pytest.fixture
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


@linux
@pytest.mark.parametrize("allowed", [True, False])
def test_a_child_of_asyncio_is_confined(trap: Trap, allowed: bool) -> None:
    if reason := landlock.refusal():
        pytest.skip(f"no Landlock here: {reason}")
    plan = GuardPlan(Guard.LANDLOCK, "", (HostPort("127.0.0.1", trap.port),) if allowed else ())
    argv = [sys.executable, "-c", "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"]

    async def main() -> int:
        child = await asyncio.create_subprocess_exec(
            *argv, str(trap.port), preexec_fn=plan.confinement(1), close_fds=False, stderr=asyncio.subprocess.DEVNULL
        )
        return await child.wait()

    assert asyncio.run(main()) == (0 if allowed else 1)
    assert trap.caught() == int(allowed)


@pytest.mark.parametrize(
    ("text", "place", "needs_lookup"),
    [
        ("db.example:5432", HostPort("db.example", 5432), True),
        (" DB.Example:5432 ", HostPort("db.example", 5432), True),
        ("127.0.0.1:1", HostPort("127.0.0.1", 1), False),
        ("localhost:65535", HostPort("localhost", 65535), False),
        ("[::1]:80", HostPort("::1", 80), False),
        ("1e100.example:80", HostPort("1e100.example", 80), True),
    ],
)
def test_places(text: str, place: HostPort, needs_lookup: bool) -> None:
    assert HostPort.parse(text) == place
    assert HostPort.parse(str(place)) == place
    assert place.needs_lookup is needs_lookup


@pytest.mark.parametrize(
    "text",
    ["", ":", "a", "a:", ":1", "a:0", "a:65536", "a:-1", "a:b", "::1:80", "[]:1", "a:1,b:2", "http://a:1", "u@a:1"],
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageError, match="is not HOST:PORT"):
        HostPort.parse(text)


# --- a run inside the namespace --------------------------------------------------------------------------------------

INSIDE = """
import os, socket, subprocess, sys
from tapeproxy.proxy.guard import establish
from tapeproxy.proxy.processes import RUN_VARIABLE, RunProcesses, listening, listening_by_netlink
from tapeproxy.tapes.errors import UsageError
try:
    establish("namespace")
except UsageError as error:
    print(error)
    sys.exit()
code = '''
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    server.accept()[0].sendall(b"from the run")
    sys.stdin.read()
'''
env = {**os.environ, RUN_VARIABLE: "inside"}
run = RunProcesses("inside")
with subprocess.Popen([sys.executable, "-c", code], env=env, stdin=-1, stdout=-1, text=True) as child:
    port = int(child.stdout.readline())
    with socket.create_connection(("127.0.0.1", port)) as client:
        print(client.recv(99).decode(), run.owns_port(port), run.pids() == [child.pid])
        print(listening_by_netlink(port) == listening(port) != set())
    child.stdin.close()
"""


@linux
@pytest.mark.parametrize("wrap", [[], ["setpriv", "--bounding-set=-sys_admin"]], ids=["", "without rights"])
def test_inside_the_namespace_a_server_of_the_run_is_found_and_reached(wrap: list[str]) -> None:
    if wrap and (shutil.which("setpriv") is None or os.geteuid() != 0):
        pytest.skip("needs setpriv, and root to take rights from")
    lines = launch(INSIDE, wrap=wrap).stdout.splitlines()
    if "cannot be had" in lines[0]:
        pytest.skip(lines[0])
    assert lines == ["from the run True True", "True"]
