"""One table of what clients do, the same on the recorder, the tape server and a hybrid wire. Nothing but raw protocol.

Each cell is run, or has a reason. What the tape has asks nobody: the origins count who comes.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
import wsproto.events as ws
from authority import Authority
from h2client import Client2, Heard
from hybridwire import Hybrid
from origin import PATIENCE, Call, Gate, Origin
from origin2 import Call as Call2
from origin2 import Origin2
from recording import Recording, read_all, read_until
from served import serve
from traps import Trap
from wstalks import ServerEnd, WsClient, accepting

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.violations import Violation

OLD, NEW, SOCKETS = "old.example.com", "api.example.com", "ws.example.com"
HEAD = Head(started_at="2026-01-01T00:00:00Z", rules={"matching": VERSION})


class Wire(Protocol):
    """A wire to come out by."""

    port: int

    def trust(self) -> ssl.SSLContext:
        """Contexts that trust its authority."""
        ...


@dataclass(frozen=True, slots=True)
class Way:
    """The same for all wires: a port, and a file of the authority that it signs with."""

    port: int
    cafile: str

    def tunnel(self, host: str, *protocols: str) -> ssl.SSLSocket:
        """A raw connection in TLS to a host."""
        context = ssl.create_default_context(cafile=self.cafile)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        sock = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        sock.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        return context.wrap_socket(sock, server_hostname=host)

    def get(self, path: str) -> ssl.SSLSocket:
        """Ask for a path of the old host in HTTP/1.1; its connection."""
        sock = self.tunnel(OLD)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {OLD}\r\n\r\n".encode())
        return sock

    def httpx(self) -> httpx.Client:
        trust = ssl.create_default_context(cafile=self.cafile)
        return httpx.Client(proxy=f"http://127.0.0.1:{self.port}", verify=trust, trust_env=False, timeout=PATIENCE)

    @contextlib.contextmanager
    def http2(self) -> Iterator[Client2]:
        with self.tunnel(NEW, "h2", "http/1.1") as sock:
            assert sock.selected_alpn_protocol() == "h2"
            yield Client2(sock)

    @contextlib.contextmanager
    def talk(self, path: str, **options: Any) -> Iterator[WsClient]:
        with self.tunnel(SOCKETS) as sock:
            yield WsClient(sock, SOCKETS, path, **options).accepted()


# --- the servers --------------------------------------------------------------------------------------------------

BIG = 3_000_000
EVENTS = [b"data: %d\n\n" % n for n in range(4)] + [b"data: [DONE]\n\n"]
LINES = [b'{"n": %d}\n' % n for n in range(4)]
POLLED = [Gate(), Gate()]
"""Opened by the second request of each pass: the recording's and that of the hybrid that is live."""


async def old(call: Call) -> None:
    streamed = "Transfer-Encoding: chunked"
    match call.request.target.partition("?")[0]:
        case "/stream":
            await call.head("200 OK", streamed, "Trailer: X-Sum")
            for line in LINES:
                await call.chunk(line)
            await call.last_chunk("X-Sum: 4")
        case "/events":
            await call.head("200 OK", streamed, "Content-Type: text/event-stream")
            for event in EVENTS:
                await call.chunk(event)
            await call.last_chunk()
        case "/early":
            await call.head("103 Early Hints", "Link: </a>")
            await call.reply(b"late")
        case "/nothing":
            await call.head("204 No Content", "X-A: 1")
        case "/reset" | "/cut" as how:
            await call.head("200 OK", streamed)
            await call.chunk(b"half")
            await asyncio.sleep(0.02)  # so that it comes before the end does
            (call.reset if how == "/reset" else call.close)()
        case "/poll":
            pass_ = int(sum(one.target == "/poll" for one in ORIGINS.old.requests) > 1)
            await call.wait(POLLED[pass_])
            await call.reply(b"polled")
        case "/happen":
            pass_ = int(sum(one.target == "/happen" for one in ORIGINS.old.requests) > 1)
            POLLED[pass_].open()
            await call.reply(b"happened")
        case "/large":
            await call.reply(bytes(range(250)) * (BIG // 250))
        case "/offered":
            await call.reply(b"%b, %b" % (call.request.body, str(call.request.header("upgrade")).encode()))
        case _:
            await call.reply(b"%d" % len(call.request.body), "200 OK", "X-Double: 1", "X-Double: 2")


async def new(call: Call2) -> None:
    match call.path:
        case "/stream":
            await call.head(103, ("link", "</a>"))
            await call.head(200, ("content-type", "application/x-ndjson"))
            for line in LINES:
                await call.data(line)
            await call.trailers(("x-sum", "4"))
        case "/reset":
            await call.head(200)
            await call.data(b"half")
            await call.reset(11)
        case "/large":
            await call.head(200)
            await call.data(bytes(range(250)) * (BIG // 250), end=True)
        case "/S/Unary":
            body = await call.body()
            await call.head(200, ("content-type", "application/grpc"), ("server", "yes"))
            await call.data(body)
            await call.trailers(("grpc-status", "0"), ("grpc-message", "fine"))
        case "/S/None":
            await call.body()
            await call.head(200, ("content-type", "application/grpc"), ("grpc-status", "5"), end=True)
        case "/S/Chat":
            await call.head(200, ("content-type", "application/grpc"))
            while (piece := await call.pieces.get()) is not None:
                if piece:
                    await call.data(piece)
            await call.trailers(("grpc-status", "0"))
        case _:
            body = await call.body()
            await call.head(200, ("x-double", "1"), ("x-double", "2"))
            await call.data(b"%d" % len(body), end=True)


async def chat(end: ServerEnd) -> None:
    """Answers each message; pings at `ping`, ends in one way or another at `close` and `cut`."""
    while True:
        match await end.hear():
            case ws.TextMessage(data="ping"):
                await end.say(ws.Ping(b"now"))
                assert isinstance(await end.hear(), ws.Pong)
                await end.say(ws.TextMessage("po", message_finished=False), ws.TextMessage("nged"))
            case ws.TextMessage(data="close"):
                await end.close(4001, "bye")
                return
            case ws.TextMessage(data="cut"):
                end.call.close()
                return
            case ws.TextMessage(data=text):
                await end.say(ws.TextMessage(text * 2), ws.TextMessage(text[::-1]))
            case ws.BytesMessage(data=data):
                await end.say(ws.BytesMessage(data))
            case ws.CloseConnection() as closing:
                await end.say(closing.response())
                end.call.close()
                return


# --- what clients do ----------------------------------------------------------------------------------------------


def lines_of_json(way: Way) -> object:
    with way.httpx() as client, client.stream("GET", f"https://{OLD}/stream?boundaries") as reply:
        return list(reply.iter_raw())


def trailers(way: Way) -> object:
    with way.get("/stream") as sock:
        return read_until(sock, b"\r\n\r\n") + read_until(sock, b"4\r\n\r\n")


def events(way: Way) -> object:
    with way.httpx() as client, client.stream("GET", f"https://{OLD}/events") as reply:
        return list(reply.iter_raw())


def early_hints(way: Way) -> object:
    with way.get("/early") as sock:
        # The words behind a status of 1xx are on no tape.
        return [line[:12] for line in read_until(sock, b"late").split(b"\r\n")]


def no_content(way: Way) -> object:
    with way.get("/nothing") as sock:
        head = read_until(sock, b"\r\n\r\n")
        sock.sendall(f"GET /after HTTP/1.1\r\nHost: {OLD}\r\n\r\n".encode())
        return head, read_until(sock, b"\r\n\r\n0")


def broken(path: str) -> Callable[[Way], object]:
    def play(way: Way) -> object:
        # Without TLS, in which Python calls a reset an end.
        with socket.create_connection(("127.0.0.1", way.port), PATIENCE) as sock:
            sock.sendall(f"GET http://{OLD}{path} HTTP/1.1\r\nHost: {OLD}\r\n\r\n".encode())
            head = read_until(sock, b"\r\n\r\n4\r\nhalf\r\n")
            try:
                return head, read_all(sock)
            except ConnectionError as error:
                return head, type(error).__name__

    return play


def long_poll(way: Way) -> object:
    with way.httpx() as client, ThreadPoolExecutor(1) as pool:
        polling = pool.submit(client.get, f"https://{OLD}/poll")
        happened = client.get(f"https://{OLD}/happen").text
        return polling.result(PATIENCE).text, happened


def expecting(way: Way) -> object:
    with way.tunnel(OLD) as sock:
        head = f"POST /expect HTTP/1.1\r\nHost: {OLD}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        sock.sendall(head.encode())
        said = read_until(sock, b"\r\n\r\n")[:12]
        sock.sendall(b"hello")
        return said, read_until(sock, b"\r\n\r\n5")[-1:]


def offering(way: Way) -> object:
    """As Java's client does, and curl with `--http2`: the server may overlook it, and all is HTTP/1.1."""
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAA"
    head = f"POST http://{OLD}/offered HTTP/1.1\r\nHost: {OLD}\r\n{offer}\r\nContent-Length: 5\r\n\r\n"
    with socket.create_connection(("127.0.0.1", way.port), PATIENCE) as sock:
        heard: list[object] = []
        for body in (b"hello", b"again"):
            sock.sendall(head.encode() + body)
            heard.append(read_until(sock, b", None").partition(b"\r\n\r\n")[2])
        return heard


def large(way: Way) -> object:
    with way.httpx() as client:
        down = client.get(f"https://{OLD}/large").content
        up = client.post(f"https://{OLD}/up", content=bytes(BIG)).text
        chunked = client.post(f"https://{OLD}/chunked", content=iter([bytes(BIG), b"end"])).text
        return len(down), down[-3:], up, chunked


def asks(*paths: str, body: bytes = b"", method: str = "GET") -> Callable[[Way], object]:
    """Streams at once on one connection of HTTP/2."""

    def play(way: Way) -> object:
        with way.http2() as client:
            return [client.hear(number) for number in [client.ask(method, path, body) for path in paths]]

    return play


def large_in_http2(way: Way) -> object:
    with way.http2() as client:
        down = client.hear(client.ask(path="/large")).body
        return len(down), down[-3:], client.hear(client.ask("POST", "/up", bytes(BIG))).body


GRPC = ("content-type", "application/grpc"), ("te", "trailers")
MESSAGE = b"\0\0\0\0\5hello"


def grpc_unary(way: Way) -> object:
    with way.http2() as client:
        return [client.hear(client.ask("POST", f"/S/{method}", MESSAGE, *GRPC)) for method in ("Unary", "None")]


def grpc_chat(way: Way) -> object:
    """The second message is said when the answer to the first has come."""
    with way.http2() as client:
        number = client.begin("POST", "/S/Chat", *GRPC)
        for count in (1, 2):
            client.say(number, MESSAGE)
            while len(client.streams[number].body) < count * len(MESSAGE):
                client.read()
                assert not client.gone
        client.say(number, b"", end=True)
        heard = client.hear(number)
        return heard.body, heard.trailers


def socket_echo(way: Way) -> object:
    with way.talk("/echo") as client:
        client.send("one", "two")
        heard: list[object] = [client.texts(4)]
        client.say(ws.BytesMessage(b"\0\xff" * 3))
        heard.append(client.next())
        client.say(ws.TextMessage("ping"))
        heard += [client.next(), client.say(ws.Pong(b"now")), client.next(), client.next()]
        client.send("close")
        return [*heard, client.next()]


def socket_compressed(way: Way) -> object:
    with way.talk("/compressed", deflate=True) as client:
        client.send("over and over " * 100)
        return client.texts(2), client.close(1000, "done")


def socket_cut(way: Way) -> object:
    with way.talk("/cut") as client:
        client.send("cut")
        return client.next()


def heard_of(*pieces: bytes, **fields: Any) -> Heard:
    return Heard(200, pieces=[*pieces], **fields)


FRAMED = b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in LINES)
COUNTED = ("x-double", "1"), ("x-double", "2")
JSON_HEAD = (("content-type", "application/x-ndjson"),)
GRPC_HEAD = ("content-type", "application/grpc")
NOT_CHATTY = "a call that waits for answers before it has said all: a hybrid run decides about whole requests"

TABLE: dict[str, tuple[Callable[[Way], object], object]] = {
    "lines of JSON, by chunk": (lines_of_json, LINES),
    "trailers": (
        trailers,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + FRAMED + b"0\r\nX-Sum: 4\r\n\r\n",
    ),
    "server-sent events": (events, EVENTS),
    "early hints": (
        early_hints,
        [b"HTTP/1.1 103", b"Link: </a>", b"", b"HTTP/1.1 200", b"Content-Leng", b"", b"late"],
    ),
    "no content": (
        no_content,
        (
            b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX-Double: 1\r\nX-Double: 2\r\nContent-Length: 1\r\n\r\n0",
        ),
    ),
    "a reset": (
        broken("/reset"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "ConnectionResetError"),
    ),
    "a cut": (
        broken("/cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", b""),
    ),
    "long polling": (long_poll, ("polled", "happened")),
    "a client that expects it": (expecting, (b"HTTP/1.1 100", b"5")),
    "an offer of HTTP/2": (offering, [b"hello, None", b"again, None"]),
    "large bodies": (large, (BIG, bytes((247, 248, 249)), str(BIG), str(BIG + 3))),
    "HTTP/2 at once": (
        asks("/a", "/b", "/c", body=b"12345", method="POST"),
        [heard_of(b"5", headers=COUNTED, ended=True)] * 3,
    ),
    "HTTP/2 hints, pieces, trailers": (
        asks("/stream"),
        [
            heard_of(
                *LINES, headers=JSON_HEAD, early=[(103, (("link", "</a>"),))], trailers=(("x-sum", "4"),), ended=True
            )
        ],
    ),
    "HTTP/2 reset": (
        asks("/reset", "/fine"),
        [heard_of(b"half", reset=11), heard_of(b"0", headers=COUNTED, ended=True)],
    ),
    "HTTP/2 large bodies": (large_in_http2, (BIG, bytes((247, 248, 249)), b"%d" % BIG)),
    "gRPC unary": (
        grpc_unary,
        [
            heard_of(
                MESSAGE,
                headers=(GRPC_HEAD, ("server", "yes")),
                trailers=(("grpc-status", "0"), ("grpc-message", "fine")),
                ended=True,
            ),
            heard_of(headers=(GRPC_HEAD, ("grpc-status", "5")), ended=True),
        ],
    ),
    "gRPC in both directions": (grpc_chat, (MESSAGE * 2, (("grpc-status", "0"),))),
    "a WebSocket": (
        socket_echo,
        [
            ["oneone", "eno", "twotwo", "owt"],
            ws.BytesMessage(b"\0\xff" * 3),
            ws.Ping(b"now"),
            None,
            ws.TextMessage("po", message_finished=False),
            ws.TextMessage("nged"),
            ws.CloseConnection(4001, "bye"),
        ],
    ),
    "a compressed WebSocket": (
        socket_compressed,
        (["over and over " * 200, ("over and over " * 100)[::-1]], ws.CloseConnection(1000, "done")),
    ),
    "a WebSocket that breaks off": (socket_cut, ws.CloseConnection(1006)),
}
REASONS = {("gRPC in both directions", "hybrid"): NOT_CHATTY}


# --- the wires ----------------------------------------------------------------------------------------------------


@dataclass
class Origins:
    """The three servers, for as long as these tests run."""

    old: Origin
    new: Origin2
    sockets: Origin

    @property
    def hosts(self) -> dict[str, str]:
        return {OLD: self.old.url, NEW: self.new.url, SOCKETS: self.sockets.url}

    def visits(self) -> tuple[int, ...]:
        return self.old.connections, self.new.lines, self.sockets.connections


ORIGINS: Origins


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def origins(authority: Authority) -> Iterator[Origins]:
    global ORIGINS
    tls = authority.serving("127.0.0.1")
    with (
        Origin(old, tls=tls) as first,
        Origin2(new, authority.serving("127.0.0.1")) as second,
        Origin(accepting(chat, deflate=True), tls=tls) as third,
    ):
        ORIGINS = Origins(first, second, third)
        yield ORIGINS


@dataclass
class Recorded:
    tape: Tape
    heard: dict[str, object]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, authority: Authority, origins: Origins) -> Recorded:
    """A tape of everything in the table, one after the other, and what was heard."""
    folder = tmp_path_factory.mktemp("recorded")
    recording = Recording(folder, authority, head=HEAD, upstream_ca=authority.cert, hosts=origins.hosts)
    with recording:
        way = Way(recording.port, str(authority.cert))
        heard = {name: attempt(play, way) for name, (play, _) in TABLE.items()}
    assert recording.wire.failures.count == 0
    return Recorded(recording.tape(), heard)


def attempt(play: Callable[[Way], object], way: Way) -> object:
    try:
        return play(way)
    except Exception as error:
        return error


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, recorded: Recorded) -> Iterator[Way]:
    with serve(recorded.tape, tmp_path_factory.mktemp("served")) as run:
        yield Way(run.port, str(run.ca.certificate))
        assert run.noticed == []


@pytest.fixture(scope="module")
def hybrid(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, origins: Origins, recorded: Recorded
) -> Iterator[tuple[Way, Hybrid]]:
    folder = tmp_path_factory.mktemp("hybrid")
    with Hybrid(folder, authority, recorded.tape, upstream_ca=authority.cert, hosts=origins.hosts) as wire:
        yield Way(wire.port, str(authority.cert)), wire
    assert wire.wire.failures.count == 0
    assert wire.noticed == []


@pytest.mark.parametrize("name", TABLE)
def test_on_the_recorder(recorded: Recorded, name: str) -> None:
    assert recorded.heard[name] == TABLE[name][1]


@pytest.mark.parametrize("name", TABLE)
def test_on_the_tape_server(replayed: Way, origins: Origins, name: str) -> None:
    play, expected = TABLE[name]
    before = origins.visits()
    assert play(replayed) == expected
    assert origins.visits() == before


@pytest.mark.parametrize("name", TABLE)
def test_on_a_hybrid_wire(hybrid: tuple[Way, Hybrid], origins: Origins, name: str) -> None:
    """Twice: once the tape answers and nobody is asked, once the world does."""
    if (name, "hybrid") in REASONS:
        pytest.skip(REASONS[name, "hybrid"])
    (way, wire), (play, expected) = hybrid, TABLE[name]
    before, live = origins.visits(), wire.judge.live_of.total()
    assert play(way) == expected
    assert origins.visits() == before
    assert wire.judge.live_of.total() == live
    assert play(way) == expected
    assert wire.judge.live_of.total() > live


MISSES: dict[str, tuple[Callable[[Way], object], str]] = {
    "HTTP/1.1": (lambda way: got(way, "/other"), "miss"),
    "HTTP/2": (asks("/other"), "miss"),
    "a stream once more": (asks("/a", body=b"12345", method="POST"), "used-up"),
    "gRPC unary": (lambda way: call_of(way, "/S/Other", MESSAGE), "miss"),
    "gRPC that goes on": (lambda way: call_of(way, "/S/Chat", MESSAGE.replace(b"hello", b"other"), more=True), "miss"),
    "a WebSocket": (lambda way: upgraded(way, SOCKETS, "/other"), "miss"),
    "a WebSocket elsewhere": (lambda way: upgraded(way, OLD, "/echo"), "miss"),
    "a message": (lambda way: upgraded(way, SOCKETS, "/echo", "another"), "websocket"),
}


def got(way: Way, path: str) -> bytes:
    with way.get(path) as sock:
        return sock.recv(100)


def call_of(way: Way, path: str, data: bytes, *, more: bool = False) -> object:
    with way.http2() as client:
        number = client.begin("POST", path, *GRPC)
        client.say(number, data, end=not more)
        return client.hear(number)


def upgraded(way: Way, host: str, path: str, *says: str) -> object:
    with way.tunnel(host) as sock:
        client = WsClient(sock, host, path)
        answer = client.next()
        client.send(*says)
        return answer, client.next()


@pytest.mark.parametrize("name", MISSES)
def test_what_is_not_on_the_tape_reaches_nobody(
    recorded: Recorded, origins: Origins, tmp_path: Path, name: str
) -> None:
    play, kind = MISSES[name]
    before = origins.visits()
    with serve(recorded.tape, tmp_path) as run:
        way = Way(run.port, str(run.ca.certificate))
        if kind == "used-up":
            TABLE["HTTP/2 at once"][0](way)
        play(way)
        assert [one.kind for one in run.noticed if isinstance(one, Violation)] == [kind]
    assert origins.visits() == before


def test_tunnels_to_a_server_that_listens_reach_it_not(recorded: Recorded, tmp_path: Path) -> None:
    """Whatever is said in them: TLS, HTTP/2 without it, a WebSocket, and what is none of these."""
    trap = Trap()
    says = (
        *(b"\x16\x03\x01\x00\x05", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\1\2", b"SSH-2.0-\r\n"),
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    )
    try:
        with serve(recorded.tape, tmp_path) as run:
            for said in says:
                with run.connect() as sock:
                    sock.sendall(f"CONNECT 127.0.0.1:{trap.port} HTTP/1.1\r\n\r\n".encode())
                    read_until(sock, b"\r\n\r\n")
                    sock.sendall(said)
                    sock.shutdown(socket.SHUT_WR)
                    with contextlib.suppress(ConnectionError):
                        read_all(sock)
            assert len(run.noticed) >= 3
        assert trap.caught() == 0
    finally:
        trap.close()
