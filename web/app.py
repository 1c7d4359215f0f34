"""The page's server: an ASGI application over a `Library`. Knows HTTP; tapes and forks are the library's.

All of the API wants the token that `tapeproxy serve` prints: a tape can be read by its owner alone, and a port of
loopback by everybody on the machine. The page itself, which holds nothing of a tape, does not. Requests that another
site's page makes, or that name another host (DNS rebinding), are refused before that.
"""

import asyncio
import hmac
import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.web.assets import ONLINE, POLICY, SCRIPTS, STYLE, asset
from tapeproxy.web.details import details
from tapeproxy.web.library import ForkOrder, Library, Shown
from tapeproxy.web.overview import labels, outline, ranks
from tapeproxy.web.searching import find

_EVERY: Final = 0.15
"""Seconds between two looks at a tape that grows."""
_LARGEST_BODY: Final = 1 << 20
_LABELS: Final = 1000
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
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


class _Doorkeeper:
    """Lets in what comes from our own page, or from no page at all."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (why := self._refused(scope)):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 4403, "reason": why})
                return
            await JSONResponse({"error": why}, 403, headers=_HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope) -> str:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get(b"host", "") not in self._hosts:
            return "this server is not the host that the request names"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc not in self._hosts:
            return "the request comes from another site"
        if headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin"):
            # A link to the page itself may stand anywhere.
            if scope["type"] == "http" and headers.get(b"sec-fetch-mode") == "navigate" and scope["method"] == "GET":
                return ""
            return "the request comes from another site"
        return ""


class _Server:
    def __init__(self, library: Library, token: str, hosts: frozenset[str]) -> None:
        self._library = library
        self._token = token
        self._hosts = hosts

    def app(self) -> ASGIApp:
        api = [
            ("/api/tapes", self._list, "GET"),
            ("/api/tapes/{name}/outline", self._outline, "GET"),
            ("/api/tapes/{name}/ranks", self._ranks, "GET"),
            ("/api/tapes/{name}/labels", self._labels, "GET"),
            ("/api/tapes/{name}/exchanges/{number:int}", self._exchange, "GET"),
            ("/api/tapes/{name}/search", self._search, "GET"),
            ("/api/tapes/{name}/file", self._file, "GET"),
            ("/api/tapes/{name}/plan", self._plan, "POST"),
            ("/api/tapes/{name}/fork", self._fork, "POST"),
            ("/api/forks/{number:int}", self._fork_state, "GET"),
            ("/api/forks/{number:int}/stop", self._stop_fork, "POST"),
        ]
        routes = [
            Route("/", self._page),
            Route("/tape/{name}", self._page),
            Route("/assets/{path:path}", self._asset),
            *(Route(path, self._guarded(endpoint), methods=[method]) for path, endpoint, method in api),
            WebSocketRoute("/api/tapes/{name}/live", self._live),
        ]
        middleware = [Middleware(_Doorkeeper, hosts=self._hosts), Middleware(GZipMiddleware, minimum_size=2000)]
        return Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: _told})

    def _guarded(self, endpoint: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def guarded(request: Request) -> Response:
            if not self._knows(request.headers.get("x-tapeproxy-token", "")):
                raise HTTPException(401, "open the address that `tapeproxy serve` printed: it has the token")
            try:
                response: Response = await endpoint(request)
            except TapeproxyError as error:
                raise HTTPException(422, str(error)) from None
            except KeyError:
                raise HTTPException(404, "there is no such tape, exchange or fork") from None
            response.headers.update(_HEADERS)
            return response

        return guarded

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    async def _page(self, _request: Request) -> Response:
        scripts = "\n".join(f'<script src="/assets/{name}"></script>' for name in (*SCRIPTS, ONLINE))
        return Response(_PAGE.format(style=STYLE, scripts=scripts), media_type="text/html", headers=_HEADERS)

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["path"]
        try:
            content = asset(name)
        except KeyError:
            raise HTTPException(404, "there is no such file") from None
        kind = "text/css" if name.endswith(".css") else "text/javascript" if name.endswith(".js") else "text/plain"
        return Response(content, media_type=kind, headers=_HEADERS)

    async def _list(self, _request: Request) -> Response:
        rows = await run_in_threadpool(self._library.listed)
        return JSONResponse(
            [{"name": row.name, "written": row.written, "size": row.size, "recording": row.recording} for row in rows]
        )

    async def _outline(self, request: Request) -> Response:
        name = request.path_params["name"]

        def make() -> str:
            looked = self._library.open(name).look()
            return _dump(outline(looked.tape, looked.ending, name))

        return _json(await run_in_threadpool(make))

    async def _ranks(self, request: Request) -> Response:
        def make() -> str:
            return _dump(ranks(self._library.open(request.path_params["name"]).causality()))

        return _json(await run_in_threadpool(make))

    async def _labels(self, request: Request) -> Response:
        first = _number(request, "from", 1)
        last = min(_number(request, "to", first), first + _LABELS)

        def make() -> str:
            tape = self._library.open(request.path_params["name"]).look().tape
            numbers = range(max(1, first), min(last, len(tape.exchanges)) + 1)
            return _dump(labels(tape.exchanges[number - 1] for number in numbers))

        return _json(await run_in_threadpool(make))

    async def _exchange(self, request: Request) -> Response:
        number = request.path_params["number"]

        def make() -> str:
            shown = self._library.open(request.path_params["name"])
            tape = shown.look().tape
            if not 1 <= number <= len(tape.exchanges):
                raise KeyError(number)
            return _dump(details(tape.exchanges[number - 1], shown.causality()))

        return _json(await run_in_threadpool(make))

    async def _search(self, request: Request) -> Response:
        text = request.query_params.get("q", "")

        def make() -> list[int]:
            return find(self._library.open(request.path_params["name"]).look().tape, text)

        return JSONResponse({"numbers": await run_in_threadpool(make)})

    async def _file(self, request: Request) -> Response:
        def make() -> bytes | None:
            return self._library.open(request.path_params["name"]).file()

        data = await run_in_threadpool(make)
        if data is None:
            raise HTTPException(404, "the tape is encrypted: `tapeproxy verify` checks it")
        return Response(data, media_type="application/octet-stream")

    async def _plan(self, request: Request) -> Response:
        order = await _order(request)
        return JSONResponse(await run_in_threadpool(self._library.plan, request.path_params["name"], order))

    async def _fork(self, request: Request) -> Response:
        order = await _order(request)
        return JSONResponse(await run_in_threadpool(self._library.fork, request.path_params["name"], order))

    async def _fork_state(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._library.fork_state, request.path_params["number"]))

    async def _stop_fork(self, request: Request) -> Response:
        await run_in_threadpool(self._library.stop_fork, request.path_params["number"])
        return JSONResponse({})

    async def _live(self, socket: WebSocket) -> None:
        """Outlines of what is new, from the whole tape on: so a page that comes back has lost nothing."""
        await socket.accept()
        try:
            hello = await asyncio.wait_for(socket.receive_json(), 10)
            if not isinstance(hello, dict) or not self._knows(str(hello.get("token", ""))):
                await socket.close(4401, "the token is wrong")
                return
            await self._follow(socket, socket.path_params["name"])
        except (WebSocketDisconnect, TimeoutError, ValueError):
            return
        except TapeproxyError as error:
            await socket.close(4422, str(error)[:100])
        except KeyError:
            await socket.close(4404, "there is no such tape")

    async def _follow(self, socket: WebSocket, name: str) -> None:
        shown = self._library.open(name)
        serial = -1
        while True:
            news, serial, ended = await run_in_threadpool(_news, shown, name, serial)
            if news:
                await socket.send_text(news)
            if ended:
                await socket.close(1000, "the tape has ended")
                return
            await asyncio.sleep(_EVERY)


def _news(shown: Shown, name: str, serial: int) -> tuple[str, int, bool]:
    """What a page that follows a tape has to be told: nothing where it is as it was at `serial`; at -1, all of it."""
    now, changed = shown.since(max(serial, 0))
    looked = shown.look()
    if now == serial:
        return "", serial, False
    only = None if serial < 0 else changed
    news = {
        "outline": outline(looked.tape, looked.ending, name, only=only),
        "labels": labels(looked.tape.exchanges[number - 1] for number in sorted(changed)),
    }
    return _dump(news), now, looked.ending is not None


def _told(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=_HEADERS)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _dump(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise HTTPException(400, f"{name} is no number")
    return int(text)


async def _order(request: Request) -> ForkOrder:
    if int(request.headers.get("content-length", "0")) > _LARGEST_BODY:
        raise HTTPException(413, "the order is too long")
    body = await request.body()
    try:
        given = json.loads(body)
        options = tuple((str(option), str(value)) for option, value in given["options"])
        keyless = tuple(str(name) for name in given.get("keyless", ()))
        rerun = str(given.get("rerun", "future"))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise HTTPException(400, 'a fork is ordered as {"options": [["--at", "7"], …], "rerun": "future"}') from None
    return ForkOrder(options, rerun, keyless)
