"""Acknowledge a request's head at once. Knows one socket option of Linux.

requests and urllib3 send head and body in two writes, and turn Nagle's algorithm on behind a proxy: the body waits for
the ACK of the head, which the kernel delays by 40 ms. Measured: a POST took 44 ms, with this 0.4-0.8 ms.
"""

import asyncio
import socket
from typing import TYPE_CHECKING

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.sockets import client_socket

if TYPE_CHECKING:
    from mitmproxy.connection import Client
    from mitmproxy.http import HTTPFlow

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class QuickAck:
    """Addon: sets TCP_QUICKACK after a head whose body has not come with it. Elsewhere than on Linux: does nothing."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._waiting: dict[str, asyncio.Handle] = {}

    def requestheaders(self, flow: "HTTPFlow") -> None:
        if _QUICKACK is not None:
            # Called once the bytes at hand are used up; when the body was among them, `request` has been here.
            loop = asyncio.get_running_loop()
            self._waiting[flow.id] = loop.call_soon(self._acknowledge, flow.id, flow.client_conn, _QUICKACK)

    def request(self, flow: "HTTPFlow") -> None:
        handle = self._waiting.pop(flow.id, None)
        if handle is not None:
            handle.cancel()

    def _acknowledge(self, flow_id: str, client: "Client", option: int) -> None:
        with self._failures:
            self._waiting.pop(flow_id, None)
            sock = client_socket(client)
            if sock is not None:
                sock.setsockopt(socket.IPPROTO_TCP, option, 1)  # the kernel clears it by itself
