"""Who may ask the page's server: our own page, or no page at all; and what a browser is told with each answer."""

from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tapeproxy.web.assets import POLICY

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Doorkeeper:
    """Lets in what comes from our own page, or from no page at all."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = frozenset(f"http://{host}" for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (why := self._refused(scope)):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 4403, "reason": why})
                return
            await JSONResponse({"error": why}, 403, headers=HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope) -> str:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get(b"host", "") not in self._hosts:
            return "this server is not the host that the request names"
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._origins:
            return "the request comes from another site"
        if headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin"):
            # A link to the page itself may stand anywhere.
            if scope["type"] == "http" and headers.get(b"sec-fetch-mode") == "navigate" and scope["method"] == "GET":
                return ""
            return "the request comes from another site"
        return ""
