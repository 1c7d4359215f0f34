"""Tunnels to the run's own servers are left alone. Knows which hosts are loopback; who listens there it is told.

A request in the clear, or to a server that our CA may speak for, is taped as any other, and marked. But a server of the
run that speaks TLS has a certificate of its own, which its clients trust in place of ours.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mitmproxy.connection import Server

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.untaped import Untaped
from tapeproxy.tapes.hosts import is_loopback

if TYPE_CHECKING:
    from mitmproxy.tls import ClientHelloData


class InsideGate:
    """Addon: passes TLS to a loopback port of the run through untouched, with a note."""

    def __init__(self, is_inside: Callable[[int], bool], untaped: Untaped, failures: Failures) -> None:
        self._is_inside = is_inside
        self._untaped = untaped
        self._failures = failures

    def tls_clienthello(self, data: "ClientHelloData") -> None:
        with self._failures:
            address = data.context.server.address
            if address is None or not is_loopback(address[0]) or not self._is_inside(address[1]):
                return
            data.ignore_connection = True
            # A connection of its own, or it would go through the upstream proxy where there is one.
            data.context.server = Server(address=address)
            text = "TLS to a server of the run itself passes through live; its bytes are not on the tape"
            self._untaped.note("inside-tunnel", address[0], address[1], text)
