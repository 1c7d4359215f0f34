"""The sockets behind mitmproxy's connections, which it hides from addons. Knows where they are kept (12.3)."""

import asyncio
import socket
import struct
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mitmproxy import ctx

if TYPE_CHECKING:
    from mitmproxy.addons.proxyserver import Proxyserver
    from mitmproxy.connection import Client, Connection
    from mitmproxy.proxy.server import ConnectionIO
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData

_LINGER_NONE = struct.pack("ii", 1, 0)


def proxy_server() -> "Proxyserver":
    """mitmproxy's addon that holds the live connections."""
    found: Proxyserver = ctx.master.addons.lookup["proxyserver"]
    return found


def client_socket(client: "Client") -> socket.socket | None:
    """The TCP socket to a client, None when it is closed already."""
    io = _transport(client, client)
    if io is None or not isinstance(io.writer, asyncio.StreamWriter):
        return None
    found: socket.socket | None = io.writer.get_extra_info("socket")
    return found


def reset_on_close(client: "Client") -> None:
    """Make the coming close of a client's connection a TCP reset. What was sent before still arrives on loopback."""
    sock = client_socket(client)
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)


class Resets:
    """Addon: remembers how upstream connections were read, to tell a reset from an orderly end.

    mitmproxy treats both alike, and drops the stream reader, which knows, before the `error` hook runs.
    """

    def __init__(self) -> None:
        self._readers: WeakKeyDictionary[Connection, asyncio.StreamReader] = WeakKeyDictionary()

    def server_connected(self, data: "ServerConnectionHookData") -> None:
        io = _transport(data.client, data.server)
        if io is not None and isinstance(io.reader, asyncio.StreamReader):
            self._readers[data.server] = io.reader

    def was_reset(self, connection: "Connection") -> bool:
        """True when reading from `connection` failed. False for one inside a tunnel, which has no socket."""
        reader = self._readers.get(connection)
        return reader is not None and reader.exception() is not None


def _transport(client: "Client", connection: "Connection") -> "ConnectionIO | None":
    handler = proxy_server().connections.get(client.id)
    return None if handler is None else handler.transports.get(connection)
