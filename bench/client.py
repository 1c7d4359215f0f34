"""How the measuring clients reach a server: straight, or through a proxy's CONNECT. Loopback only."""

import os
import socket
from urllib.parse import urlsplit

_PATIENCE = 60.0


class ClientError(Exception):
    """The server answered something else than it should, or nothing."""


def proxy_port() -> int:
    """The port of the proxy that this process was started behind."""
    port = urlsplit(os.environ["HTTPS_PROXY"]).port
    assert port is not None
    return port


def dial(port: int, tunnel_to: str | None = None) -> socket.socket:
    """A connection to `port`, and through it to `tunnel_to` (host:port). Raises ClientError."""
    sock = socket.create_connection(("127.0.0.1", port), _PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tunnel_to is not None:
        sock.sendall(f"CONNECT {tunnel_to} HTTP/1.1\r\nHost: {tunnel_to}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = sock.recv(65536)
            if not more:
                raise ClientError(f"CONNECT was answered with {answer!r}")
            answer += more
        if b" 200 " not in answer.split(b"\r\n")[0]:
            raise ClientError(f"CONNECT was answered with {answer!r}")
    return sock
