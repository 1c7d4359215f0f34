"""A client of this very process at the tape server: no CONNECT, no TLS, the origin is known from the start."""

import asyncio
import socket
import weakref
from typing import cast

from tapeproxy.proxy.connection import Connection
from tapeproxy.proxy.inprocess.routes import Origin, Pipe
from tapeproxy.proxy.requestreader import RequestReader
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.records import Headers

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class TapeLine(Connection):
    """The far end of a pipe. A client that was told to use a proxy may ask for a tunnel: it gets it, in the clear."""

    def __init__(self, server: TapeServer, origin: Origin, near: Pipe) -> None:
        super().__init__(server)
        self._origin = origin.url.encode()
        self._authority = origin.authority.encode()
        self._tunnel_open = True
        self._near = weakref.ref(near)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket = cast(socket.socket, _Lever(self._near))
        self._port = 0
        self._server.connections.add(self)

    def _absolute(self, url: bytes, headers: Headers) -> bytes:
        # What a client sends to its proxy says itself where it is to go.
        scheme, separator, _ = url.partition(b"://")
        return url if separator and scheme.isalpha() else super()._absolute(url, headers)

    def _connect(self, authority: bytes) -> None:
        self._origin = b"https://" + authority.removesuffix(b":443")
        self._authority = authority
        self._reader = RequestReader()
        self._transport.write(_ESTABLISHED)


class _Lever:
    """What the connection sets on its socket: a pair knows no TCP, and is reset by closing it with bytes unread."""

    def __init__(self, near: "weakref.ref[Pipe]") -> None:
        self._near = near

    def setsockopt(self, level: int, name: int, value: object) -> None:
        near = self._near()
        if (level, name) == (socket.SOL_SOCKET, socket.SO_LINGER) and near is not None and near.fileno() >= 0:
            socket.socket.send(near, b"\0")
