"""What the agent's own sockets receive is told, and a tape serves it when the server is gone."""

import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from shimruns import SEED, Run, everywhere, run
from shimvalues import io, write_taped

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.iovalues import ValueCheck, ValueReader
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Drift

PRELUDE = """
import asyncio, json, os, select, selectors, socket, sys, threading
PORT = int(sys.argv[1]); A = ("127.0.0.1", PORT); out = []
"""


def talk(conn: socket.socket) -> None:
    """A small protocol of lines: a greeting, `count` gives another number each time, `big` much, `bye` ends it."""
    conn.sendall(b"hello %d\n" % next(NUMBERS))
    with conn.makefile("rb") as lines:
        for line in lines:
            if line == b"count\n":
                conn.sendall(b"%d\n" % next(NUMBERS))
            elif line.startswith(b"big "):
                conn.sendall(b"x" * int(line[4:]) + b"\n")
            elif line == b"abort\n":
                conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            elif line == b"bye\n":
                return


NUMBERS = iter(range(1, 10**6))


@contextmanager
def serving(answer: Callable[[socket.socket], None] = talk, listener: socket.socket | None = None) -> Iterator[int]:
    """A server on a port of its own, which is gone afterwards."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def one(conn: socket.socket) -> None:
        with conn:
            answer(conn)

    def accept() -> None:
        while not ended.is_set():
            conn, _ = listener.accept()
            if ended.is_set():
                conn.close()
                return
            threading.Thread(target=one, args=(conn,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    address: Any = listener.getsockname()
    try:
        yield address[1] if isinstance(address, tuple) else 0
    finally:
        ended.set()
        with socket.socket(listener.family) as last:
            last.connect(address)
        thread.join()
        listener.close()


TALKS = (
    PRELUDE
    + """
with socket.create_connection(A) as sock:
    out.append(sock.recv(100).decode()); out.append(select.select([sock], [], [], 0)[0])
    sock.sendall(b"count\\n"); out.append(sock.recv(100).decode())
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    out.append([sock.getpeername()[1] == PORT, len(sock.getsockname()), sock.getsockopt(6, socket.TCP_NODELAY) != 0])
    with sock.makefile("rw") as file:
        file.write("big 300\\ncount\\n"); file.flush(); out.append([len(file.readline()), file.readline()])
    room = bytearray(5); sock.send(b"count\\n")
    out.append([select.select([sock], [], [], 30)[0] == [sock], sock.recv(2, socket.MSG_PEEK)[:1].decode()])
    count = sock.recv_into(room); out.append(bytes(room[:count]).decode())
    sock.sendall(b"big 150000\\n"); got = 0
    while got < 150001: got += len(sock.recv(1 << 20))
    sock.sendmsg([b"bye", b"\\n"]); out.append(sock.recv(10).decode())
sock = socket.socket(); sock.settimeout(30); out.append(sock.connect_ex(A)); out.append(sock.recvfrom(50)[0].decode())
sock.send(b"abort\\n")
try: sock.recv(10)
except ConnectionError as error: out.append(str(error))
sock.close()
async def streams():
    reader, writer = await asyncio.open_connection(*A)
    out.append((await reader.readline()).decode())
    for _ in range(2): writer.write(b"co"); writer.write(b"unt\\n"); out.append((await reader.readline()).decode())
    writer.close(); await writer.wait_closed()
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setblocking(False); await loop.sock_connect(sock, A); out.append((await loop.sock_recv(sock, 99)).decode())
        await loop.sock_sendall(sock, b"bye\\n"); out.append((await loop.sock_recv(sock, 99)).decode())
asyncio.run(streams())
sock = socket.create_connection(A); sock.recv(50)
def reads():
    while True:
        data = sock.recv(50)
        if not data: return
        out.append(data.decode())
thread = threading.Thread(target=reads); thread.start()
sock.sendall(b"count\\n"); sock.sendall(b"bye\\n"); thread.join(); sock.close()
refused = lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])))
later = lambda: asyncio.run(asyncio.open_connection("127.0.0.1", int(sys.argv[2])))
for call in (refused, refused, later, lambda: socket.gethostbyname("no.invalid")):
    try: call()
    except OSError as error: out.append([type(error).__name__, error.errno, str(error)])
print(json.dumps(out))
"""
)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def replayed(
    code: str, first: Run, tmp_path: Path, sidecar: Path, python: Path | str, *args: str, mode: str = "tape", n: int = 0
) -> Run:
    folder = tmp_path / f"replay{n}"
    folder.mkdir()
    taped = write_taped(first.lines, folder / "values")
    return run(code, *args, mode="replay", python=python, sidecar=sidecar, extra=io(mode, tmp_path, taped))


@everywhere
def test_connections_are_told_and_served_when_the_server_is_gone(python: Path, tmp_path: Path, sidecar: Path) -> None:
    with serving() as port:
        args = (str(port), str(closed_port()))
        bare = run(TALKS, *args, mode="bare", python=python, sidecar=sidecar)
        first = run(TALKS, *args, python=python, sidecar=sidecar, extra=io("record", tmp_path))
    assert len(first.json) == len(bare.json), first.stderr
    assert first.json != bare.json, "a server that never differs shows nothing"
    again = replayed(TALKS, first, tmp_path, sidecar, python, *args)
    assert again.json == first.json, again.stderr
    assert {line["what"] for line in again.of("value")} == {"sent"}
    assert again.of("violation") == []


def drifts(first: Run, again: Run) -> list[str]:
    """What the launcher says of a replay."""
    reader = ValueReader(Redactor(bytes(32)), bytes.fromhex(SEED))
    records = [reader.read(line, 0) for line in first.of("value")]
    found: list[Drift] = []
    taped = [(i, record) for i, record in enumerate(records, 1) if record is not None]
    check = ValueCheck(Tape(Head(seed=SEED, io=True), values=taped), Redactor(bytes(32)), found.append)
    for line in again.of("value"):
        check.take(line)
    check.finish()
    shown = [(drift, [(f.taped, f.asked) for f in drift.differences[:1]]) for drift in found]
    return [" | ".join([drift.request, drift.what, *map(str, differs)]) for drift, differs in shown]


TRIO = """
import sys, trio
async def main():
    sock = await trio.open_tcp_stream("127.0.0.1", int(sys.argv[1]))
    print(await sock.receive_some(100)); await sock.send_all(b"count\\n"); print(await sock.receive_some(100))
    await sock.send_all(b"big 100000\\nbye\\n"); size = 0
    async for data in sock: size += len(data)
    print(size); await sock.aclose()
trio.run(main)
"""


def test_trio_keeps_no_method_that_passes_by(tmp_path: Path, sidecar: Path) -> None:
    with serving() as port:
        first = run(TRIO, str(port), python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    assert first.stdout.endswith("100001\n"), first.stderr
    again = replayed(TRIO, first, tmp_path, sidecar, sys.executable, str(port))
    assert again.stdout == first.stdout
    assert drifts(first, again) == []


SAYS = (
    PRELUDE
    + """
sock = socket.create_connection(A); sock.recv(50)
if "poll" in sys.argv:
    import _tapeproxy.servedsockets as served; served._PATIENCE = 0.05
    sock.setblocking(False); sock.send(b"cou"); poll = selectors.DefaultSelector(); poll.register(sock, 1)
    print(len(poll.select(30)))
for word in sys.argv[2:]:
    if word != "wait": sock.sendall(word.encode() + b"\\n")
    print(len(sock.recv(50)))
sock.close()
"""
)
SENDS = "sent of socket A in lane m | the agent sends something else than on the tape | "
LESS = "the agent waits for an answer although it has sent less than on the tape; it was given the tape's"
WAITS = f"sent A in lane m | {LESS}"
MORE = "the agent waits for more than the tape has; it was told that the connection is gone"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["count", "count"], []),
        (["count", "tnuoc"], [SENDS + "('count', 'tnuoc')"]),
        (["count"], [SENDS + "('count', None)"]),
        (["wait"], [WAITS, SENDS + "('count', None)"]),
        (["poll"], [WAITS, SENDS + "('count', 'coupoll')"]),
        (
            ["count", "count", "count"],
            [f"received A in lane m | {MORE}"],
        ),
    ],
)
def test_what_is_sent_is_compared_and_nobody_waits_for_ever(
    words: list[str], said: list[str], tmp_path: Path, sidecar: Path
) -> None:
    with serving() as port:
        first = run(
            SAYS, str(port), "count", "count", python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path)
        )
    again = replayed(SAYS, first, tmp_path, sidecar, sys.executable, str(port), *words)
    found = [
        re.sub(r" at .*? in <module>", "", text).replace(f"127.0.0.1:{port}", "A") for text in drifts(first, again)
    ]
    assert found == said, again.stderr


def test_tls_is_named_and_refused(tmp_path: Path, sidecar: Path) -> None:
    code = (
        PRELUDE
        + """
import ssl
context = ssl._create_unverified_context()
def wrapped():
    with socket.create_connection(A) as sock, context.wrap_socket(sock) as tls: return tls.recv(5)
def wrapped_before():
    with context.wrap_socket(socket.socket()) as tls: tls.connect(A); return tls.recv(5)
async def streams():
    reader, writer = await asyncio.open_connection(*A, ssl=context)
    got = await reader.read(5); writer.close(); return got
for call in (wrapped, wrapped_before, lambda: asyncio.run(streams())):
    try: out.append(call().decode())
    except ConnectionRefusedError as error: out.append(str(error))
print(json.dumps(out))
"""
    )
    tls = CertificateAuthority.open(tmp_path / "home").server_context("127.0.0.1")

    def greet(conn: socket.socket) -> None:
        with tls.wrap_socket(conn, server_side=True) as wrapped:
            wrapped.sendall(b"hello")

    with serving(greet) as port:
        first = run(code, str(port), python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    assert first.json == ["hello"] * 3, first.stderr
    told = first.of("value")
    assert [line["data"].get("tls") for line in told if line["data"].get("tls")] == [True] * 3
    assert not [line for line in told if line.get("content")]
    again = replayed(code, first, tmp_path, sidecar, sys.executable, str(port))
    assert all("may not reach" in text for text in again.json), again.stderr
    refused = [line["address"] for line in again.of("violation")]
    assert refused == [f"127.0.0.1:{port} (TLS on a socket of the agent's own, which --io cannot serve)"] * 3


NAMES = (
    PRELUDE
    + """
if sys.argv[2] == "real":  # a resolver that needs no network
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", PORT))]
    socket._socket.getaddrinfo = lambda host, *_, **__: found
out.append(repr(socket.getaddrinfo("db.example", PORT, type=socket.SOCK_STREAM)))
with socket.create_connection(("db.example", PORT)) as sock: out.append(sock.recv(50).decode())
async def streams():
    reader, writer = await asyncio.open_connection("db.example", PORT)
    out.append((await reader.readline()).decode()); writer.close()
asyncio.run(streams())
for call in (socket.gethostbyname, socket.gethostbyname_ex):
    try: out.append(call("no.invalid"))
    except OSError as error: out.append([type(error).__name__, error.errno, str(error)])
print(json.dumps(out))
"""
)


def test_names_are_served(tmp_path: Path, sidecar: Path) -> None:
    with serving() as port:
        first = run(NAMES, str(port), "real", python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    assert "127.0.0.1" in first.json[0], first.stderr
    assert first.of("bypass") == []
    again = replayed(NAMES, first, tmp_path, sidecar, sys.executable, str(port), "taped")
    assert again.json == first.json
    assert again.of("violation") == []


UNIX = """
import json, os, socket, sys, threading
os.chdir(sys.argv[1])
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect("s"); print(json.dumps([sock.recv(50).decode(), sock.getpeername()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="paths of UNIX sockets are looked up in /proc")
def test_unix_sockets_are_served_and_compared(tmp_path: Path, sidecar: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        with serving(talk, listener):
            first = run(UNIX, str(tmp_path), python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
            live = replayed(UNIX, first, tmp_path, sidecar, sys.executable, str(tmp_path), mode="verify")
    assert [line["name"] for line in first.of("value")] == ["unix:s"] * 3
    assert ["received of socket unix:s" in text for text in drifts(first, live)] == [True]
    again = replayed(UNIX, first, tmp_path, sidecar, sys.executable, str(tmp_path), n=1)
    assert again.json == first.json, again.stderr
    assert drifts(first, again) == []


WITHIN = (
    PRELUDE
    + """
with socket.create_server(("127.0.0.1", 0)) as listener:
    with socket.create_connection(listener.getsockname()) as sock:
        conn, _ = listener.accept(); conn.send(b"own"); conn.close(); out.append(sock.recv(9).decode())
os.chdir(sys.argv[2])
with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as sock:
    listener.bind("own"); listener.listen(); sock.connect("own"); conn, _ = listener.accept()
    conn.send(b"path"); conn.close(); out.append(sock.recv(9).decode())
os.remove("own")
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); datagrams.bind(("127.0.0.1", 0))
datagrams.connect(datagrams.getsockname()); datagrams.send(b"x"); out.append(datagrams.recv(9).decode())
out.append([type(socket.socket()).__name__, type(sock).__name__, isinstance(sock, socket.socket)])
print(json.dumps(out))
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="who owns a port is looked up in /proc")
@pytest.mark.parametrize("mode", ["record", "tape", "verify"])
def test_the_run_itself_and_datagrams_are_left_alone(mode: str, tmp_path: Path, sidecar: Path) -> None:
    bare = run(WITHIN, "0", str(tmp_path), mode="bare", python=sys.executable, sidecar=sidecar)
    first = run(WITHIN, "0", str(tmp_path), python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    done = (
        first
        if mode == "record"
        else replayed(WITHIN, first, tmp_path, sidecar, sys.executable, "0", str(tmp_path), mode=mode)
    )
    assert done.json == bare.json == ["own", "path", "x", ["socket", "socket", True]]
    told = [line for line in done.of("value") if line["what"] != "change"]
    assert [line["data"] for line in told] == ([{"within": True}] * 2 if mode == "record" else [])


STARTS = """
import socket, subprocess, sys
server = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); " \\
    "c, _ = s.accept(); c.send(b'mine'); c.close()"
with subprocess.Popen([sys.executable, "-c", server], stdout=-1) as child:
    with socket.create_connection(("127.0.0.1", int(child.stdout.readline()))) as sock: print(sock.recv(9))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="who owns a port is looked up in /proc")
def test_a_program_that_is_connected_to_is_run_in_the_replay(tmp_path: Path, sidecar: Path) -> None:
    first = run(STARTS, python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    assert first.stdout == "b'mine'\n", first.stderr
    again = replayed(STARTS, first, tmp_path, sidecar, sys.executable)
    assert again.stdout == first.stdout, again.stderr


def test_what_is_too_long_is_not_served(tmp_path: Path, sidecar: Path) -> None:
    code = (
        PRELUDE
        + """
sock = socket.create_connection(A); sock.sendall(b"big 300000\\nbye\\n")
got = 0
while True:
    data = sock.recv(1 << 16); got += len(data)
    if not data: break
print(got > 300000)
"""
    )
    with serving() as port:
        first = run(code, str(port), python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    held = [len(line["content"]) for line in first.of("value") if line["what"] == "received" and "content" in line]
    assert first.stdout == "True\n"
    assert 0 < sum(held) <= 256 * 1024
    again = replayed(code, first, tmp_path, sidecar, sys.executable, str(port))
    assert "Connection refused" in again.stderr
    (text,) = drifts(first, again)
    assert text.startswith(f"socket 127.0.0.1:{port} in lane m at ")
    assert text.endswith("('found', 'ECONNREFUSED')")


@pytest.mark.parametrize("mode", ["verify", "tape"])
def test_what_is_not_on_the_tape_is_a_violation(mode: str, tmp_path: Path, sidecar: Path) -> None:
    code = PRELUDE + "socket.create_connection(A)"
    first = run("print(1)", python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    with serving() as port:
        again = replayed(code, first, tmp_path, sidecar, sys.executable, str(port), mode=mode)
    assert [line["address"] for line in again.of("violation")] == [f"127.0.0.1:{port}"]
    assert again.of("value") == []
