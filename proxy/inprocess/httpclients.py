"""Leads `http.client` to the route, and urllib3, requests, boto3 and urllib with it: they connect by its method."""

import functools
import socket
from collections.abc import Callable
from typing import Any

from tapeproxy.proxy.inprocess.journal import Journal
from tapeproxy.proxy.inprocess.routes import Origin, Pipe, fits, route_to

type Method = Callable[..., Any]


def patch_http_client(module: Any, journal: Journal) -> None:
    """Replace how `http.client` connects, and have it forget connections that do not fit."""
    patch_connections(module, journal)
    journal.replace(module.HTTPConnection, "send", _send(module.HTTPConnection.send))


def patch_connections(module: Any, journal: Journal) -> None:
    """Replace how the two classes of a module connect, which is http.client or urllib3.connection."""
    journal.replace(module.HTTPConnection, "connect", _connect("http", module.HTTPConnection.connect))
    journal.replace(module.HTTPSConnection, "connect", _connect("https", module.HTTPSConnection.connect))


@functools.cache
def _connect(scheme: str, original: Method) -> Method:
    @functools.wraps(original)
    def connect(self: Any) -> None:
        host, port = _goal(self)
        route = route_to(host, port)
        if route is None:
            original(self)
            return
        pipe = Pipe.open(route, Origin(scheme, host, port))
        timeout = self.timeout
        pipe.settimeout(timeout if isinstance(timeout, int | float | None) else socket.getdefaulttimeout())
        self.sock = pipe
        if hasattr(self, "is_verified"):  # urllib3 warns of what is not; here nothing leaves the process
            self.is_verified = True

    return connect


@functools.cache
def _send(original: Method) -> Method:
    @functools.wraps(original)
    def send(self: Any, data: Any) -> Any:
        if self.sock is not None and not fits(self.sock, *_goal(self)):
            self.sock.close()
            self.sock = None
            self.connect()
        return original(self, data)

    return send


def _goal(connection: Any) -> tuple[str, int]:
    """Where a connection leads in the end: a tunnel through a proxy leads to its far side."""
    if connection._tunnel_host:
        return connection._tunnel_host, connection._tunnel_port or connection.default_port
    return connection.host, connection.port
