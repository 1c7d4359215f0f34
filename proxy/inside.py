"""Inside traffic: a request of the run to a server of the run, passed on live over loopback while it is listened to.

The only module of a replay that opens a connection, and only to loopback addresses: a name is never resolved.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httptools

from tapeproxy.proxy.decisions import Asked
from tapeproxy.tapes.hosts import loopback_literals
from tapeproxy.tapes.lanes import LANE_HEADER
from tapeproxy.tapes.records import Headers

_READ = 1 << 16
_HOP = frozenset({b"proxy-connection", b"proxy-authorization", LANE_HEADER})
_OFFER = frozenset({b"upgrade", b"connection", b"http2-settings"})


class Outlet(NamedTuple):
    """The way to the client: `send` takes bytes, `ready` returns once more may be sent."""

    send: Callable[[bytes], None]
    ready: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer that was passed on. `keep_alive`: the client may use its connection again."""

    status: int
    headers: Headers
    body: bytes
    keep_alive: bool


@dataclass(slots=True)
class _Listener:
    """Reads a response as it goes by. `complete` once it is whole, or its head is and there can be no body."""

    head_only: bool
    parser: Any = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: list[bytes] = field(default_factory=list)
    complete: bool = False
    keep_alive: bool = False

    @property
    def delimited(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        return not self.headers or bool(names & {b"content-length", b"transfer-encoding"})

    def heard(self) -> Heard:
        return Heard(self.parser.get_status_code(), tuple(self.headers), b"".join(self.body), self.keep_alive)

    def on_message_begin(self) -> None:
        self.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        # llhttp would wait for the body that the headers of an answer to HEAD announce.
        if self.head_only:
            self.on_message_complete()

    def on_body(self, data: bytes) -> None:
        self.body.append(data)

    def on_message_complete(self) -> None:
        # llhttp forgets whether the connection lives on once the message is over.
        self.complete = self.parser.get_status_code() >= 200
        self.keep_alive = self.parser.should_keep_alive()


async def relay_exchange(
    asked: Asked, host: str, port: int, outlet: Outlet, heard: Callable[[Heard], None], connected: Callable[[int], None]
) -> bool | None:
    """Send the request to `host`:`port` and pass the answer to `outlet` as it comes, no faster than the client reads.

    `heard` gets the whole answer before its last bytes are sent, so that whatever it finds is known before the client
    acts on it; `connected` our port, before anything is sent. Returns whether the connection may be used again; None
    when there was no whole answer.
    """
    for address in loopback_literals(host):
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(address, port)
            break
    else:
        return None
    sending: asyncio.Task[None] | None = None
    try:
        connected(writer.get_extra_info("sockname")[1])
        # Both at once: a server may answer, and read no more.
        sending = asyncio.create_task(_send(asked, writer))
        return await _listen(reader, asked, outlet, heard)
    except OSError:
        return None
    finally:
        if sending is not None:
            sending.cancel()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def relay_tunnel(client: asyncio.Transport, host: str, port: int) -> asyncio.Transport | None:
    """Join the client's connection to `host`:`port`; returns the far transport, or None with the client closed."""
    loop = asyncio.get_running_loop()
    for address in loopback_literals(host):
        with contextlib.suppress(OSError):
            transport, _ = await loop.create_connection(lambda: _FarEnd(client), address, port)
            return transport
    client.close()
    return None


class Relay(NamedTuple):
    """A connection to `host`:`port` to be joined with the client's; `data` goes there first."""

    host: str
    port: int
    data: bytes


class _FarEnd(asyncio.Protocol):
    """Passes on what a server of the run sends into a tunnel."""

    def __init__(self, client: asyncio.Transport) -> None:
        self._client = client

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        self._client.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def eof_received(self) -> None:
        """Nothing more comes, so the client's connection ends once all of it is sent."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.close()


async def _listen(
    reader: asyncio.StreamReader, asked: Asked, outlet: Outlet, heard: Callable[[Heard], None]
) -> bool | None:
    listener = _Listener(head_only=asked.method == b"HEAD")
    parser = listener.parser = httptools.HttpResponseParser(listener)
    while data := await reader.read(_READ):
        try:
            parser.feed_data(data)
        except httptools.HttpParserError:
            return None
        if listener.complete:
            whole = listener.heard()
            heard(whole)
            outlet.send(data)
            return whole.keep_alive
        outlet.send(data)
        await outlet.ready()
    # A body that ends with the connection is whole, any other is cut.
    if listener.delimited:
        return None
    heard(listener.heard())
    return False


async def _send(asked: Asked, writer: asyncio.StreamWriter) -> None:
    if isinstance(asked.body, bytes):
        writer.write(request_head(asked) + asked.body)
        return
    writer.write(request_head(asked))
    with contextlib.suppress(OSError):  # the server left, which is heard where its answer is
        for piece in asked.body.pieces():
            writer.write(piece)
            await writer.drain()


def request_head(asked: Asked) -> bytes:
    """The head of a request as a server of the run hears it.

    HTTP/2 is not offered to it: when recorded, the wire overlooked the offer for it, and so the answer was in HTTP/1.1.
    """
    after_scheme = asked.url.partition(b"://")[2]
    slash = after_scheme.find(b"/")
    target = after_scheme[slash:] if slash >= 0 else b"/"
    names = {name.lower() for name, _ in asked.headers}
    offered = any(name.lower() == b"upgrade" and value.lower() == b"h2c" for name, value in asked.headers)
    left_out = _HOP | _OFFER if offered else _HOP
    headers = [(name, value) for name, value in asked.headers if name.lower() not in left_out]
    if b"transfer-encoding" in names:
        headers = [(name, value) for name, value in headers if name.lower() != b"transfer-encoding"]
        size = len(asked.body) if isinstance(asked.body, bytes) else asked.body.size
        headers.append((b"content-length", b"%d" % size))
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return asked.method + b" " + target + b" HTTP/1.1\r\n" + lines + b"\r\n"
