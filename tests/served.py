"""A tape server in a thread, for tests that talk to it with real clients and raw sockets."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.tapeserver import Serving, TapeServer
from tapeproxy.tapes.exchanges import Chunk, Exchange, Tape
from tapeproxy.tapes.records import End, Framing, Head, Headers, How, Request, Response
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Drift, Violation

MS = 1_000_000
KEY = bytes(range(32))
OK = ((b"content-type", b"text/plain"),)


def exchange(
    url: str = "https://api.example.com/",
    *chunks: bytes,
    method: bytes = b"GET",
    body: bytes = b"",
    status: int = 200,
    headers: Headers = OK,
    framing: Framing = "length",
    how: How = "complete",
    gap: int = 0,
    **fields: object,
) -> Exchange:
    """An exchange as it would come from a tape; its number is given by `tape_of`. `gap`: ns between chunks."""
    request_headers = ((b"content-type", b"application/json"),) if body else ()
    request = Request(
        t=0,
        method=method,
        url=url.encode(),
        headers=request_headers,
        body=body,
        inside=bool(fields.pop("inside", False)),
    )
    response = Response(t=gap, of=1, status=status, reason=b"OK", headers=headers, framing=framing, **fields)  # type: ignore[arg-type]  # a row's fields
    timed = [Chunk(gap * at, data) for at, data in enumerate(chunks, 1)]
    return Exchange(1, 1, request, response, timed, end=End(t=gap * (len(chunks) + 1), of=1, how=how))


def tape_of(exchanges: Sequence[Exchange]) -> Tape:
    """A tape of these exchanges, numbered."""
    for number, one in enumerate(exchanges, 1):
        one.number = number
    return Tape(Head(started_at="2026-01-01T00:00:00Z"), list(exchanges))


@dataclass(slots=True)
class Served:
    """A running tape server."""

    port: int
    replayer: Replayer
    server: TapeServer
    ca: CertificateAuthority
    noticed: list[Violation | Drift]

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca.certificate))

    def connect(self) -> socket.socket:
        """A raw connection to the proxy."""
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def tunnel(self, authority: str = "api.example.com:443") -> ssl.SSLSocket:
        """A raw TLS connection through CONNECT."""
        sock = self.connect()
        sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        return self.trust().wrap_socket(sock, server_hostname=authority.rpartition(":")[0])


def read_until(sock: socket.socket, mark: bytes) -> bytes:
    """Read until `mark` has come; raises ConnectionError when the connection ends before."""
    data = b""
    while mark not in data:
        more = sock.recv(65536)
        if not more:
            raise ConnectionError(f"ended after {data!r}")
        data += more
    return data


def read_all(sock: socket.socket) -> bytes:
    """Read to the end of the connection."""
    out = b""
    while more := sock.recv(65536):
        out += more
    return out


@contextlib.contextmanager
def serve(
    exchanges: Sequence[Exchange] | Tape,
    directory: Path,
    *,
    speed: float | None = None,
    owns_port: Callable[[int], bool] = lambda _: False,
    secrets: Sequence[str] = (),
) -> Iterator[Served]:
    """Serve a tape, or one of these exchanges, from a thread of its own."""
    ca = CertificateAuthority.open(directory)
    noticed: list[Violation | Drift] = []
    tape = exchanges if isinstance(exchanges, Tape) else tape_of(exchanges)
    replayer = Replayer(tape, Redactor(KEY, secrets), owns_port, noticed.append)
    server = TapeServer(
        replayer,
        lambda host, http2: ca.server_context(host, http2=http2),
        lambda host, port: host == "127.0.0.1" and owns_port(port),
        Serving(speed=speed),
    )
    started: list[int] = []
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        started.append(await server.start())
        ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), name="tape server")
    thread.start()
    try:
        assert ready.wait(10)
        yield Served(started[0], replayer, server, ca, noticed)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
