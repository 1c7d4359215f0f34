"""Where a replayed request's time goes: its steps one by one, in this process, without sockets."""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import httptools

from bench.conversation import HOST, PATH, Growth, conversation, request_head
from bench.figures import Bench, Line, Sample, Skipped
from bench.material import chat_tape
from bench.processes import home
from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.connection import Connection
from tapeproxy.proxy.decisions import Asked
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.proxy.tlschannel import TlsChannel
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.redaction import Redactor

_ROOM = 1 << 19


def steps(bench: Bench) -> Iterator[Line | Skipped]:
    """The steps of a request of the load, on average (its bodies are 110 KB on average); the last is all of them."""
    turns = 2 if bench.quick else 40
    tape = chat_tape(bench.folder / "steps.tape.jsonl.gz", 1, turns)
    authority = CertificateAuthority.open(home(bench.folder))
    bodies = [turn.request for turn in conversation(0, Growth(turns))]
    messages = [request_head(len(body)) + body for body in bodies]
    measured: dict[str, list[float]] = {}
    for _ in bench.rounds(15):
        for name, step in _prepared(tape, authority, bodies, messages):
            start = time.perf_counter()
            step()
            measured.setdefault(name, []).append((time.perf_counter() - start) / len(messages) * 1e6)
    for name, values in measured.items():
        ours = Sample("tapeproxy", "µs", values)
        yield Line(f"a request of 110 KB in process, no sockets: {name}", ours, None, ours.median, "µs")


def _prepared(
    tape: Path, authority: CertificateAuthority, bodies: Sequence[bytes], messages: Sequence[bytes]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each step by name, ready to be run once for all messages."""
    channel = TlsChannel(authority.server_context(HOST), memoryview(bytearray(_ROOM)))
    sealed = _sealed(authority, lambda data: (channel.feed(data), channel.outgoing())[1], messages)
    yield "decrypt", lambda: [channel.feed(data) for data in sealed]

    parser = httptools.HttpRequestParser(_Collector())
    yield "parse HTTP", lambda: [parser.feed_data(message) for message in messages]

    headers = ((b"content-type", b"application/json"),)
    asked = [Asked(b"POST", f"https://{HOST}{PATH}".encode(), headers, body) for body in bodies]
    asks = [Ask(one.method, one.url, one.headers, body) for one, body in zip(asked, bodies, strict=True)]
    yield "digest the request", lambda: [ask.raw_key() for ask in asks]

    replayer = _replayer(tape)
    yield "digest the request, find and render its answer", lambda: [replayer.decide(one) for one in asked]

    transport = _Transport()
    connection = _connected(tape, authority, transport)

    def feed(data: bytes) -> bytes:
        transport.written.clear()
        for at in range(0, len(data), 1 << 18):
            piece = data[at : at + (1 << 18)]
            connection.get_buffer(-1)[: len(piece)] = piece
            connection.buffer_updated(len(piece))
        return b"".join(transport.written)

    feed(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
    through = _sealed(authority, feed, messages)
    yield "all of it", lambda: [feed(data) for data in through]


def _sealed(
    authority: CertificateAuthority, exchange: Callable[[bytes], bytes], messages: Sequence[bytes]
) -> list[bytes]:
    """A client's handshake, then its messages, sealed."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(authority.certificate))
    tls = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    done = False
    while not done:
        try:
            tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            pass
        incoming.write(exchange(outgoing.read()))
    out: list[bytes] = []
    for message in messages:
        tls.write(message)
        out.append(outgoing.read())
    return out


def _replayer(tape: Path) -> Replayer:
    redactor = Redactor(bytes(32), ["sk-bench-0123456789abcdef"])
    return Replayer(load(tape)[0], redactor, lambda _port: False, lambda _found: None)


def _connected(tape: Path, authority: CertificateAuthority, transport: "_Transport") -> Connection:
    server = TapeServer(_replayer(tape), lambda host, _: authority.server_context(host), lambda _host, _port: False)
    server.loop = asyncio.SelectorEventLoop()
    server.loop.close()  # its clock is all that is wanted of it
    connection = Connection(server)
    connection.connection_made(cast(asyncio.Transport, transport))
    return connection


class _Collector:
    """What a connection collects of a request."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, data: bytes) -> None:
        self.body.append(data)

    def on_message_complete(self) -> None:
        self.headers.clear()
        self.body.clear()


class _Transport:
    """Keeps what is written; has no socket."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_extra_info(self, name: str, _default: object = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else self

    def setsockopt(self, *_: object) -> None:
        pass
