"""Asks a server whether it speaks HTTP/2 (ALPN), by shaking hands with it: no request is sent. Knows no mitmproxy."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapeproxy.addons.upstream import Upstream

_PATIENCE = 10.0
"""Seconds that a server may take to shake hands."""
_MOST_HEAD = 1 << 16

type Place = tuple[str, int]


class Servers:
    """What is known of servers, each asked once.

    `place` says where a host and port are reached, None: at one that does not speak TLS. `proxy` says through which
    upstream proxy, if any. `known` may say without asking.
    """

    def __init__(
        self,
        place: Callable[[str, int], Place | None],
        proxy: "Callable[[str, int], Upstream | None]",
        known: Callable[[str, int], bool | None] = lambda _host, _port: None,
    ) -> None:
        self._place = place
        self._proxy = proxy
        self._known = known
        self._asked: dict[Place, asyncio.Task[bool]] = {}

    async def speak_http2(self, host: str, port: int) -> bool:
        """Whether the server chooses HTTP/2 from a client that offers both; False where it can't be asked."""
        known = self._known(host, port)
        if known is not None:
            return known
        place = self._place(host, port)
        if place is None:
            return False
        if place not in self._asked:
            self._asked[place] = asyncio.get_running_loop().create_task(_ask(place, self._proxy(*place)))
        return await asyncio.shield(self._asked[place])


async def _ask(place: Place, proxy: "Upstream | None") -> bool:
    with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        async with asyncio.timeout(_PATIENCE):
            return await _negotiated(place, proxy) == "h2"
    return False


async def _negotiated(place: Place, proxy: "Upstream | None") -> str | None:
    host, port = place
    reader, writer = await asyncio.open_connection(*((proxy.host, proxy.port) if proxy else place), limit=_MOST_HEAD)
    try:
        if proxy is not None:
            if proxy.scheme != "http":
                return None  # TLS within TLS is not worth it: HTTP/1.1 is spoken then
            await _tunnel(reader, writer, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", proxy.credentials)
        await writer.start_tls(_offering(), server_hostname=host)
        talk: ssl.SSLObject = writer.get_extra_info("ssl_object")
        return talk.selected_alpn_protocol()
    finally:
        writer.transport.abort()


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str, credentials: bytes
) -> None:
    asked = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n".encode()
    if credentials:
        asked += b"Proxy-Authorization: " + credentials + b"\r\n"
    writer.write(asked + b"\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        raise ConnectionError("the upstream proxy opened no tunnel")


def _offering() -> ssl.SSLContext:
    # Nothing is sent to it and nothing taken from it but the protocol's name; mitmproxy verifies whom it really calls.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context
