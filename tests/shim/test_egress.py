"""What a Python program may connect to: in a replay the run itself and no more; recording, all of it, told."""

import importlib.util
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from shimruns import Run, everywhere, run
from traps import Trap, linux

from tapeproxy.shim import INJECT


@pytest.fixture
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


# Each line of the table is one way out. A program tries them all, in one function, and says how each ended.
WAYS = {
    "connect": "socket.socket().connect(A)",
    "connect_ex": "check(socket.socket().connect_ex(A))",
    "create_connection": "socket.create_connection(A)",
    "by another spelling": "socket.socket().connect(('localhost', A[1]))",
    "ipv6 mapped": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', A[1]))",
    "_socket": "_socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(A)",
    "sendto": "UDP().sendto(b'x', A)",
    "sendto with flags": "UDP().sendto(b'x', 0, A)",
    "sendmsg": "UDP().sendmsg([b'x'], [], 0, A)",
    "connected datagrams": "UDP().connect(A)",
    "urllib": "opener.open('http://127.0.0.1:%d' % A[1], timeout=0.2)",
    "asyncio": "asyncio.run(streams())",
    "sock_connect": "asyncio.run(sock_connect())",
    "datagram endpoint": "asyncio.run(datagrams())",
    "thread": "in_thread(lambda: socket.create_connection(A))",
}
LOOK_UPS = {
    "getaddrinfo": "socket.getaddrinfo('db.example', 80)",
    "gethostbyname": "socket.gethostbyname('db.example')",
    "gethostbyname_ex": "socket.gethostbyname_ex('db.example')",
    "gethostbyaddr": "socket.gethostbyaddr('192.0.2.1')",
    "loop.getaddrinfo": "asyncio.run(look_up())",
}
PRELUDE = """
import _socket, asyncio, concurrent.futures, json, os, socket, sys, urllib.request
A = ("127.0.0.1", int(sys.argv[1]))
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ended = {}
def UDP():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def check(code):
    if code:
        raise OSError(code, os.strerror(code))
async def streams():
    _, writer = await asyncio.open_connection(*A)
    writer.close()
async def sock_connect():
    with socket.socket() as sock:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, A)
async def datagrams():
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=A)
    transport.sendto(b"x")
    transport.close()
async def look_up():
    await asyncio.get_running_loop().getaddrinfo("db.example", 80)
def in_thread(function):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()
def attempt(name, function):
    try:
        function()
        ended[name] = "reached"
    except Exception as error:
        ended[name] = type(error).__name__
"""


def program(ways: dict[str, str]) -> str:
    return (
        PRELUDE
        + "".join(f"attempt({name!r}, lambda: {way})\n" for name, way in ways.items())
        + "print(json.dumps(ended))\n"
    )


def places(done: Run, kind: str) -> list[str]:
    """Where the lines of a kind say that they come from, by function."""
    return [line["where"].rpartition(" in ")[2] for line in done.of(kind)]


@linux
@everywhere
def test_a_replay_reaches_no_listener_outside_the_run(python: Path, sidecar: Path, trap: Trap) -> None:
    done = run(program(WAYS), str(trap.port), mode="replay", python=python, sidecar=sidecar)
    assert done.returncode == 0, done.stderr
    assert set(done.json) == set(WAYS)
    assert set(done.json.values()) <= {"RefusedError", "URLError"}, done.json
    assert trap.caught() == 0
    told = done.of("violation")
    assert len(told) == len(WAYS)
    assert {line["address"].rpartition(":")[2] for line in told} == {str(trap.port)}
    assert {line["what"] for line in told} == {"connect", "send"}
    assert all(line["where"].startswith("<string>:") for line in told), told


@linux
def test_the_same_program_reaches_it_without_a_guard(sidecar: Path, trap: Trap) -> None:
    done = run(
        program(WAYS), str(trap.port), mode="replay", python=sys.executable, sidecar=sidecar, extra=guarded("none")
    )
    silent = {"urllib": "TimeoutError"}  # nobody answers it
    assert {name: end for name, end in done.json.items() if end != "reached"}.keys() <= silent.keys()
    assert trap.caught() == len(WAYS) - 1, "all but one send something"
    assert done.of("violation") == []


def guarded(level: str, **more: str) -> dict[str, str]:
    return {"TAPEPROXY_GUARD": level, **more}


@everywhere
def test_a_replay_asks_nobody_for_a_name(python: Path, sidecar: Path) -> None:
    done = run(program(LOOK_UPS), "1", mode="replay", python=python, sidecar=sidecar)
    assert set(done.json.values()) == {"RefusedLookupError"}
    assert [line["address"] for line in done.of("violation")] == ["db.example"] * 3 + ["192.0.2.1", "db.example"]
    assert {line["what"] for line in done.of("violation")} == {"lookup"}
    assert places(done, "violation") == ["<lambda>"] * 4 + ["look_up"]


OWN = """
import _thread, json, multiprocessing, os, socket, subprocess, sys, threading
import multiprocessing.managers, asyncio, email.utils
CHILD = '''
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    server.accept()[0].close()
'''
def main():
    asyncio.run(asyncio.sleep(0))
    one, other = socket.socketpair()
    one.sendmsg([b"x"])
    path = os.path.join(os.path.dirname(sys.argv[1]), "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        socket.create_connection(("localhost", server.getsockname()[1])).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        one.close()
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", server.getsockname())
    child = subprocess.Popen([sys.executable, "-I", "-c", CHILD], stdout=subprocess.PIPE, text=True)
    with child:
        socket.create_connection(("127.0.0.1", int(child.stdout.readline()))).close()
    with multiprocessing.managers.SyncManager(("127.0.0.1", 0), b"key") as manager:
        assert manager.list([1])[0] == 1
    socket.getfqdn(), socket.gethostname(), email.utils.make_msgid()
    socket.getaddrinfo("localhost", 80), socket.getaddrinfo("192.0.2.1", 80), socket.getaddrinfo(None, 80)
    socket.create_connection(("127.0.0.1", int(sys.argv[2]))).close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    try:
        socket.create_connection(("127.0.0.1", port))
    except OSError as error:
        print(json.dumps(type(error).__name__))
if __name__ == "__main__":
    main()
"""


@linux
@everywhere
def test_a_run_reaches_itself_and_the_proxy(python: Path, sidecar: Path, trap: Trap) -> None:
    extra = {"TAPEPROXY_PROXY": f"127.0.0.1:{trap.port}", "TAPEPROXY_RUN": f"test-{os.getpid()}-{time.time_ns()}"}
    arguments = str(sidecar), str(trap.port)
    done = run(OWN, *arguments, mode="replay", python=python, sidecar=sidecar, extra=extra)
    assert done.json == "ConnectionRefusedError", "where nobody listens the system says so"
    assert done.of("violation") == []
    assert trap.caught() == 1


def test_in_a_namespace_the_loopback_is_the_run_s_and_only_that(sidecar: Path, trap: Trap) -> None:
    code = program({"loopback": "socket.create_connection(A)", "outside": "UDP().connect(('192.0.2.1', 9))"})
    done = run(code, str(trap.port), mode="replay", python=sys.executable, sidecar=sidecar, extra=guarded("namespace"))
    assert done.json == {"loopback": "reached", "outside": "RefusedError"}
    assert [line["address"] for line in done.of("violation")] == ["192.0.2.1:9"]


@pytest.mark.parametrize(
    ("allow", "reached"),
    [
        ("127.0.0.1:{port}", True),
        ("localhost:{port}", True),
        ("[::1]:{port}", True),  # loopback is loopback
        ("other.example:1,127.0.0.1:{port}", True),
        ("127.0.0.1:1", False),
        ("192.0.2.1:{port}", False),
        ("", False),
    ],
)
@linux
def test_what_is_allowed_is_reached(sidecar: Path, trap: Trap, allow: str, reached: bool) -> None:
    extra = {"TAPEPROXY_ALLOW": allow.format(port=trap.port)}
    code = program({"it": "socket.create_connection(A)"})
    done = run(code, str(trap.port), mode="replay", python=sys.executable, sidecar=sidecar, extra=extra)
    assert done.json == {"it": "reached" if reached else "RefusedError"}
    assert (trap.caught(), len(done.of("violation"))) == ((1, 0) if reached else (0, 1))


def test_an_allowed_name_may_be_looked_up_and_its_addresses_reached(sidecar: Path) -> None:
    """With AI_NUMERICHOST nobody is asked for a name; then `resolver` plays the part of the one who is."""
    code = """
import _socket, json, socket
def end(function, *args, **options):
    try:
        function(*args, **options)
        return "went"
    except OSError as error:
        return type(error).__name__
ended = [end(socket.getaddrinfo, name, 5432, flags=socket.AI_NUMERICHOST) for name in ("db.example", "other.example")]
real = _socket.getaddrinfo
def resolver(host, *args):
    return real({"db.example": "192.0.2.7"}.get(host, host), *args)
_socket.getaddrinfo = resolver
for address in ("192.0.2.7", 5432), ("192.0.2.7", 5433), ("192.0.2.8", 5432):
    ended.append(end(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect, address))
print(json.dumps(ended))
"""
    extra = {"TAPEPROXY_ALLOW": "db.example:5432"}
    done = run(code, mode="replay", python=sys.executable, sidecar=sidecar, extra=extra)
    assert done.json[:2] == ["gaierror", "RefusedLookupError"]
    assert done.json[2] in ("went", "OSError"), "the latter where this machine has no way out"
    assert done.json[3:] == ["RefusedError", "RefusedError"]
    assert [line["address"] for line in done.of("violation")] == ["other.example", "192.0.2.7:5433", "192.0.2.8:5432"]


SWALLOWS = """
import socket
def careless():
    for port in range(1, 4):
        for _ in range(2):
            try:
                socket.create_connection(("192.0.2.1", port))
            except Exception:
                pass
careless()
"""


@everywhere
def test_a_swallowed_refusal_is_told_each_time_with_its_line(python: Path, sidecar: Path) -> None:
    done = run(SWALLOWS, mode="replay", python=python, sidecar=sidecar)
    assert done.returncode == 0, done.stderr
    expected = [
        {"k": "violation", "what": "connect", "address": f"192.0.2.1:{port}", "where": "<string>:7 in careless"}
        for port in (1, 1, 2, 2, 3, 3)
    ]
    assert done.of("violation") == expected


def test_a_loop_of_refusals_does_not_fill_the_disk(sidecar: Path) -> None:
    done = run(SWALLOWS.replace("range(2)", "range(200)"), mode="replay", python=sys.executable, sidecar=sidecar)
    assert len(done.of("violation")) == 200
    assert [line["what"] for line in done.of("note") if line["what"] == "egress"] == ["egress"]


PASSES = """
import asyncio, socket
def connect(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", port))
        except OSError:
            pass  # no way out of this machine
async def look_up():
    try:
        await asyncio.get_running_loop().getaddrinfo("db.example", 80, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
for _ in range(3):
    connect(9)
    asyncio.run(look_up())
connect(10)
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
"""


@everywhere
def test_a_recording_tells_once_and_lets_pass(python: Path, sidecar: Path) -> None:
    done = run(PASSES, mode="record", python=python, sidecar=sidecar)
    assert (done.returncode, done.stderr) == (0, "")
    assert [(line["what"], line["address"], line["where"]) for line in done.of("bypass")] == [
        ("connect", "192.0.2.1:9", "<string>:6 in connect"),
        ("lookup", "db.example", "<string>:11 in look_up"),
        ("connect", "192.0.2.1:10", "<string>:6 in connect"),
    ]
    assert done.of("violation") == []


def test_without_a_mode_nothing_is_watched(sidecar: Path) -> None:
    done = run(PASSES, mode="bare", python=sys.executable, sidecar=sidecar, extra={"PYTHONPATH": str(INJECT)})
    assert (done.returncode, done.stderr, done.lines) == (0, "", [])


def test_a_frame_of_a_library_is_not_the_user_s_line(sidecar: Path, tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "client.py").write_text("import socket\ndef ask():\n    socket.create_connection(('192.0.2.1', 9))\n")
    code = """
import client, threading
def agent():
    client.ask()
for way in (agent, lambda: (t := threading.Thread(target=client.ask), t.start(), t.join())):
    try:
        way()
    except OSError:
        pass
"""
    done = run(
        f"import sys, threading; sys.path.append({str(library)!r}); threading.excepthook = lambda _: None{code}",
        mode="replay",
        python=sys.executable,
        sidecar=sidecar,
    )
    assert [line["where"] for line in done.of("violation")] == [
        "<string>:4 in agent",
        f"{library}/client.py:3 in ask",  # a thread that no line of the user's is in
    ]


@everywhere
def test_the_errors_are_what_clients_expect_and_cross_processes(python: Path, sidecar: Path) -> None:
    code = """
import concurrent.futures, json, multiprocessing, pickle, socket
def look_up():
    socket.getaddrinfo("db.example", 80)
def connect():
    socket.create_connection(("192.0.2.1", 9))
if __name__ == "__main__":
    said = []
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        for function in (look_up, connect):
            try:
                pool.submit(function).result()
            except OSError as error:
                same = pickle.loads(pickle.dumps(error))
                kinds = isinstance(error, socket.gaierror), isinstance(error, ConnectionRefusedError)
                said.append([type(same) is type(error), *kinds, error.errno, str(same)])
    print(json.dumps(said))
"""
    done = run(code, mode="replay", python=python, sidecar=sidecar)
    name, address = done.json
    assert name[:4] == [True, True, True, int(socket.EAI_NONAME)]
    assert "db.example" in name[4]
    assert address[:4] == [True, False, True, 111 if sys.platform == "linux" else 61]
    assert "192.0.2.1:9" in address[4]


def test_a_hook_that_forbids_ours_is_an_error(sidecar: Path) -> None:
    code = """
import sys
egress = sys.modules["_tapeproxy.egress"]
def veto(event, args):
    if event == "sys.addaudithook":
        raise RuntimeError
sys.addaudithook(veto)
try:
    egress.install()
except RuntimeError as error:
    print(error)
"""
    done = run(code, mode="replay", python=sys.executable, sidecar=sidecar)
    assert done.stdout.startswith("another audit hook"), done.stderr


@everywhere
def test_another_event_costs_next_to_nothing(python: Path, sidecar: Path) -> None:
    code = """
import sys, timeit
print(min(timeit.repeat("audit('open', 'path', 'r', 0)", globals={"audit": sys.audit}, number=20000, repeat=5)) / 20000)
"""
    done = run(code, mode="replay", python=python, sidecar=sidecar)
    assert float(done.stdout) < 2e-6, "0.2 us measured; more than a call and a look-up"


UVLOOP = importlib.util.find_spec("uvloop")


@linux
@pytest.mark.skipif(UVLOOP is None, reason="uvloop is not installed")
def test_uvloop_is_watched_too(sidecar: Path, trap: Trap) -> None:
    assert UVLOOP is not None
    assert UVLOOP.origin is not None
    code = (
        PRELUDE
        + """
import uvloop
def run(coroutine):
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()
async def by_name():
    await asyncio.open_connection("db.example", 5432)
attempt("streams", lambda: run(streams()))
attempt("sock_connect", lambda: run(sock_connect()))
attempt("datagrams", lambda: run(datagrams()))
attempt("look_up", lambda: run(look_up()))
attempt("by_name", lambda: run(by_name()))
print(json.dumps(ended))
"""
    )
    path = {"PYTHONPATH": f"{INJECT}{os.pathsep}{Path(UVLOOP.origin).parents[1]}"}
    done = run(code, str(trap.port), mode="replay", python=sys.executable, sidecar=sidecar, extra=path)
    refused = dict.fromkeys(("streams", "sock_connect", "datagrams"), "RefusedError")
    assert done.json == refused | dict.fromkeys(("look_up", "by_name"), "RefusedLookupError")
    assert trap.caught() == 0
    assert places(done, "violation") == ["streams", "sock_connect", "datagrams", "look_up", "by_name"]

    done = run(
        code, str(trap.port), mode="replay", python=sys.executable, sidecar=sidecar, extra=path | guarded("none")
    )
    assert [done.json[name] for name in refused] == ["reached"] * 3
    assert trap.caught() == 3
