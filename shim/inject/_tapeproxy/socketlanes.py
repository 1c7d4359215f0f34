"""Says on the request that opens a WebSocket which lane made it, as `attribution` does on all others.

Knows the clients that speak HTTP themselves to open one: websockets (threads and asyncio) and websocket-client. aiohttp
and httpx-ws open theirs by a request like any other.
"""

from __future__ import annotations

from .attribution import HEADER, attempt, is_wire, tag
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def patch(module: Any) -> None:
    """Patch a client's module that has just been imported."""
    _PATCHES[module.__name__](module)


def _patch_threaded(module: Any) -> None:
    cls = module.ClientConnection
    handshake = cls.handshake

    def handshake_with_lane(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt(_add_once, self.protocol, self.socket.getpeername)
        return handshake(self, *args, **kwargs)

    cls.handshake = resemble(handshake_with_lane, handshake)


def _patch_asyncio(module: Any) -> None:
    cls = module.ClientConnection
    handshake = cls.handshake

    async def handshake_with_lane(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt(_add_once, self.protocol, lambda: self.transport.get_extra_info("peername"))
        return await handshake(self, *args, **kwargs)

    cls.handshake = resemble(handshake_with_lane, handshake)


def _add_once(protocol: Any, peer: Any) -> None:
    """Have the request that the protocol sends next carry the header, and forget it: the agent can look at it."""
    if not is_wire(*peer()[:2]):
        return
    send_request, lane = protocol.send_request, tag()

    def send_with_lane(request: Any) -> None:
        del protocol.send_request
        own = HEADER in request.headers
        if not own:
            request.headers[HEADER] = lane
        try:
            send_request(request)
        finally:
            if not own:
                del request.headers[HEADER]

    protocol.send_request = send_with_lane


def _patch_websocket_client(module: Any) -> None:
    handshake = module.handshake

    def handshake_with_lane(sock: Any, *args: Any, **options: Any) -> Any:
        attempt(_add_option, sock, options)
        return handshake(sock, *args, **options)

    module.handshake = resemble(handshake_with_lane, handshake)


def _add_option(sock: Any, options: dict[str, Any]) -> None:
    if not is_wire(*sock.getpeername()[:2]):
        return
    given = options.get("header")
    if isinstance(given, dict):
        if not any(name.lower() == HEADER for name in given):
            options["header"] = {**given, HEADER: tag()}
    elif not any(line.lower().startswith(HEADER) for line in given or ()):
        options["header"] = [*(given or ()), f"{HEADER}: {tag()}"]


_PATCHES: dict[str, Callable[[Any], None]] = {
    "websockets.sync.client": _patch_threaded,
    "websockets.asyncio.client": _patch_asyncio,
    "websocket._handshake": _patch_websocket_client,
}
