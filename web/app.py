"""The page's server: an ASGI application over a `Library`. Knows HTTP; tapes and forks are the library's.

All of the API wants the token that `tapeproxy serve` prints: a tape can be read by its owner alone, and a port of
loopback by everybody on the machine. The page itself, which holds nothing of a tape, does not. Requests that another
site's page makes, or that name another host (DNS rebinding), are refused before that.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from tapeproxy.tapes.errors import LockedTapeError, TapeproxyError
from tapeproxy.web.assets import ONLINE, SCRIPTS, STYLE, asset
from tapeproxy.web.diffapi import DiffApi
from tapeproxy.web.doorkeeper import HEADERS, Doorkeeper
from tapeproxy.web.forkapi import ForkApi
from tapeproxy.web.library import Library, NotThereError
from tapeproxy.web.liveline import LiveLine
from tapeproxy.web.replies import failed, refused
from tapeproxy.web.tapeapi import TapeApi

_KINDS: Final = {".css": "text/css", ".js": "text/javascript"}
_PAGE: Final = """<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width">
<title>tapeproxy</title>
<link rel=stylesheet href="/assets/{style}">
</head>
<body>
<div id=app>Loading… (this page needs JavaScript)</div>
{scripts}
</body>
</html>
"""


def make_app(library: Library, *, token: str, hosts: frozenset[str]) -> ASGIApp:
    """The application. `hosts`: what the Host header may say, `127.0.0.1:8000` and the like."""
    return _Server(library, token, hosts).app()


class _Server:
    def __init__(self, library: Library, token: str, hosts: frozenset[str]) -> None:
        self._token = token
        self._hosts = hosts
        self._tapes = TapeApi(library)
        self._diffs = DiffApi(library)
        self._forks = ForkApi(library)
        self._line = LiveLine(library, self._knows)

    def app(self) -> ASGIApp:
        api = [
            ("/api/tapes", self._tapes.listed, "GET"),
            ("/api/tapes/{name}/about", self._tapes.about, "GET"),
            ("/api/tapes/{name}/ready", self._tapes.ready, "GET"),
            ("/api/tapes/{name}/outline", self._tapes.outline, "GET"),
            ("/api/tapes/{name}/ranks", self._tapes.ranks, "GET"),
            ("/api/tapes/{name}/labels", self._tapes.labels, "GET"),
            ("/api/tapes/{name}/exchanges/{number:int}", self._tapes.exchange, "GET"),
            ("/api/tapes/{name}/search", self._tapes.search, "GET"),
            ("/api/diff", self._diffs.whole, "GET"),
            ("/api/diff/exchanges/{number:int}", self._diffs.exchange, "GET"),
            ("/api/diff/differences/{number:int}", self._diffs.differences, "GET"),
            ("/api/tapes/{name}/why", self._tapes.why, "GET"),
            ("/api/tapes/{name}/plan", self._forks.plan, "POST"),
            ("/api/tapes/{name}/fork", self._forks.fork, "POST"),
            ("/api/forks", self._forks.listed, "GET"),
            ("/api/forks/{number:int}", self._forks.state, "GET"),
            ("/api/forks/{number:int}/stop", self._forks.stop, "POST"),
        ]
        packed = [Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)]
        routes = [
            Route("/", self._page),
            Route("/tape/{name}", self._page),
            Route("/diff", self._page),
            Route("/assets/{path:path}", self._asset, middleware=packed),
            *(Route(path, self._guarded(to), methods=[method], middleware=packed) for path, to, method in api),
            Route("/api/tapes/{name}/file", self._guarded(self._tapes.file)),  # it is packed
            WebSocketRoute("/api/tapes/{name}/live", self._line.live),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Doorkeeper, hosts=self._hosts)],
            exception_handlers={HTTPException: refused, Exception: failed},
        )

    def _guarded(self, endpoint: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def guarded(request: Request) -> Response:
            if not self._knows(request.headers.get("x-tapeproxy-token", "")):
                raise HTTPException(401, "open the address that `tapeproxy serve` printed: it has the token")
            try:
                response: Response = await endpoint(request)
            except LockedTapeError as error:
                raise HTTPException(423, str(error)) from None
            except TapeproxyError as error:
                raise HTTPException(422, str(error)) from None
            except NotThereError:
                raise HTTPException(404, "there is no such tape, exchange or fork") from None
            except ClientDisconnect:
                raise HTTPException(400, "the request was not sent whole") from None
            response.headers.update(HEADERS)
            return response

        return guarded

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    async def _page(self, _request: Request) -> Response:
        scripts = "\n".join(f'<script src="/assets/{name}"></script>' for name in (*SCRIPTS, ONLINE))
        return Response(_PAGE.format(style=STYLE, scripts=scripts), media_type="text/html", headers=HEADERS)

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["path"]
        try:
            content = asset(name)
        except KeyError:
            raise HTTPException(404, "there is no such file") from None
        mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = HEADERS | {"cache-control": "no-cache", "etag": mark}
        if request.headers.get("if-none-match", "").removeprefix("W/") == mark:
            return Response(status_code=304, headers=headers)
        kind = _KINDS.get(name[name.rfind(".") :], "text/plain")
        return Response(content, media_type=kind, headers=headers)
