"""Which HTTP a client and its server speak: what they would have agreed on without us. Knows mitmproxy's hooks.

mitmproxy shakes hands with the client before it calls the server, so it would promise HTTP/2 to whoever offers it.
Where a client offers both, the server is asked first (`agreed`); it gets no request by that.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mitmproxy.proxy.layers import HttpLayer
from mitmproxy.proxy.layers.http import HTTPMode

from tapeproxy.addons.failures import Failures

if TYPE_CHECKING:
    from mitmproxy.proxy.layer import NextLayer
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData
    from mitmproxy.tls import ClientHelloData, TlsData

_PREFACE = b"PRI * HTTP/2.0\r\n"
_H1, _H2 = b"http/1.1", b"h2"

type Agreed = Callable[[str, int], Awaitable[bool]]
"""Whether a server speaks HTTP/2 with who offers it and HTTP/1.1: by host and port."""


class Negotiation:
    """Addon: lets both sides speak the same.

    `plain`: a port of ours on loopback that only speaks HTTP/1.1. `is_front` tells whether a port is one in front of a
    base URL.
    """

    def __init__(
        self,
        agreed: Agreed,
        failures: Failures,
        plain: int = 0,
        is_front: Callable[[int], bool] = lambda _port: False,
    ) -> None:
        self._agreed = agreed
        self._failures = failures
        self._plain = plain
        self._is_front = is_front

    async def tls_clienthello(self, data: "ClientHelloData") -> None:
        with self._failures:
            offered, address = data.client_hello.alpn_protocols, data.context.server.address
            if data.ignore_connection or address is None or _H2 not in offered or _H1 not in offered:
                return
            # mitmproxy's TlsConfig chooses what stands here, and else what the client happens to name first.
            data.context.client.alpn = _H2 if await self._agreed(address[0], address[1]) else _H1

    def tls_start_server(self, data: "TlsData") -> None:
        with self._failures:
            client, server = data.context.client, data.conn
            if server.alpn_offers:  # an upstream proxy, to which mitmproxy speaks HTTP/1.1
                return
            if client.alpn == _H2 and not client.tls:
                server.alpn_offers = (_H2, _H1)
            elif client.alpn != _H2:
                server.alpn_offers = tuple(offer for offer in client.alpn_offers if offer != _H2)

    def next_layer(self, data: "NextLayer") -> None:
        """Speak HTTP/2 without TLS with a client that just begins to, as gRPC does."""
        with self._failures:
            client, in_tunnel, said = data.context.client, data.context.server.address is not None, _said(data)
            at_front = not in_tunnel and client.sockname is not None and self._is_front(client.sockname[1])
            if not (in_tunnel or at_front) or client.alpn is not None or not said:
                return
            if said.startswith(_PREFACE):
                client.alpn = _H2
                # Whom a front leads to is known when the request is.
                data.layer = HttpLayer(data.context, HTTPMode.transparent if in_tunnel else HTTPMode.regular)
            elif _PREFACE.startswith(said):
                data.layer = None  # more is to come; mitmproxy asks again

    def server_connect(self, data: "ServerConnectionHookData") -> None:
        """The server of such a client hears the same."""
        with self._failures:
            client, server = data.client, data.server
            ours = server.address is not None and server.address[1] == self._plain
            if client.alpn == _H2 and not client.tls and not server.tls and not ours:
                server.alpn = _H2


def _said(data: "NextLayer") -> bytes:
    said: bytes = data.data_client()  # type: ignore[no-untyped-call]  # mitmproxy's
    return said
