"""Lets hosts pass by that are not to be taped (`--no-tape`). Knows flows and handshakes; which hosts it is told.

Their TLS is not ours to open: the client sees the server's own certificate, and its own goes to the server.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from mitmproxy.connection import Server

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import PASSED
from tapeproxy.addons.untaped import Untaped
from tapeproxy.tapes.lanes import split_tag
from tapeproxy.tapes.passing import passes

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow
    from mitmproxy.tls import ClientHelloData


class PassBy:
    """Addon, before those that tape: tunnels to the hosts of `rules` stay closed, and their requests are not taped.

    `goes_directly` says whether a host is reached without the upstream proxy.
    """

    def __init__(
        self,
        rules: Collection[str],
        goes_directly: Callable[[str, int], bool],
        untaped: Untaped,
        failures: Failures,
    ) -> None:
        self._rules = rules
        self._goes_directly = goes_directly
        self._untaped = untaped
        self._failures = failures

    def tls_clienthello(self, data: "ClientHelloData") -> None:
        with self._failures:
            address = data.context.server.address
            if address is None or not self._rules:
                return
            named = [host for host in (address[0], data.client_hello.sni) if host]
            if not any(passes(self._rules, host, address[1]) for host in named):
                return
            data.ignore_connection = True
            if self._goes_directly(*address[:2]):
                data.context.server = Server(address=address)
            text = "a host that is not to be taped (--no-tape): its tunnel passes through closed"
            self._untaped.note("no-tape", named[-1], address[1], text)

    def requestheaders(self, flow: "HTTPFlow") -> None:
        with self._failures:
            request = flow.request
            if not passes(self._rules, request.host, request.port):
                return
            flow.metadata[PASSED] = True
            _, request.headers.fields = split_tag(request.headers.fields)
            request.stream = True
            text = "a host that is not to be taped (--no-tape): its request passes through"
            self._untaped.note("no-tape", request.host, request.port, text)

    def responseheaders(self, flow: "HTTPFlow") -> None:
        if PASSED in flow.metadata and flow.response is not None:
            flow.response.stream = True
