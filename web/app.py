"""The page's server: an ASGI application over a `Library`. Knows HTTP; tapes and forks are the library's.

All of the API wants the token that `tapeproxy serve` prints: a tape can be read by its owner alone, and a port of
loopback by everybody on the machine. The page itself, which holds nothing of a tape, does not. Requests that another
site's page makes, or that name another host (DNS rebinding), are refused before that.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.why import Provenance
from tapeproxy.tapes.whydocuments import why_document
from tapeproxy.tapes.whyspans import Wanted
from tapeproxy.web.assets import ONLINE, POLICY, SCRIPTS, STYLE, asset
from tapeproxy.web.comparing import Comparisons
from tapeproxy.web.details import details
from tapeproxy.web.library import ForkOrder, Library, Looked, NotThereError, StillRecordedError
from tapeproxy.web.overview import labels, outline, ranks
from tapeproxy.web.rundiff import RunDiff
from tapeproxy.web.searching import find

_EVERY: Final = 0.15
"""Seconds between two looks at a tape that grows."""
_LARGEST_BODY: Final = 1 << 20
_LABELS: Final = 1000
_LABELS_LIVE: Final = 250
"""Labels in a message of the line over which a tape grows: each costs a parsed body."""
_STALLED: Final = 60
"""Seconds in which a page has to take a message."""
_LONGEST_SEARCH: Final = 1000
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
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


class _Doorkeeper:
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
            await JSONResponse({"error": why}, 403, headers=_HEADERS)(scope, receive, send)
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


class _Server:
    def __init__(self, library: Library, token: str, hosts: frozenset[str]) -> None:
        self._library = library
        self._token = token
        self._hosts = hosts
        self._comparisons = Comparisons(library)

    def app(self) -> ASGIApp:
        api = [
            ("/api/tapes", self._list, "GET"),
            ("/api/tapes/{name}/about", self._about, "GET"),
            ("/api/tapes/{name}/outline", self._outline, "GET"),
            ("/api/tapes/{name}/ranks", self._ranks, "GET"),
            ("/api/tapes/{name}/labels", self._labels, "GET"),
            ("/api/tapes/{name}/exchanges/{number:int}", self._exchange, "GET"),
            ("/api/tapes/{name}/search", self._search, "GET"),
            ("/api/diff", self._diff, "GET"),
            ("/api/diff/exchanges/{number:int}", self._diff_exchange, "GET"),
            ("/api/diff/differences/{number:int}", self._diff_differences, "GET"),
            ("/api/tapes/{name}/why", self._why, "GET"),
            ("/api/tapes/{name}/plan", self._plan, "POST"),
            ("/api/tapes/{name}/fork", self._fork, "POST"),
            ("/api/forks/{number:int}", self._fork_state, "GET"),
            ("/api/forks/{number:int}/stop", self._stop_fork, "POST"),
        ]
        packed = [Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)]
        routes = [
            Route("/", self._page),
            Route("/tape/{name}", self._page),
            Route("/diff", self._page),
            Route("/assets/{path:path}", self._asset, middleware=packed),
            *(Route(path, self._guarded(to), methods=[method], middleware=packed) for path, to, method in api),
            Route("/api/tapes/{name}/file", self._guarded(self._file)),  # it is packed
            WebSocketRoute("/api/tapes/{name}/live", self._live),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(_Doorkeeper, hosts=self._hosts)],
            exception_handlers={HTTPException: _told, Exception: _failed},
        )

    def _guarded(self, endpoint: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def guarded(request: Request) -> Response:
            if not self._knows(request.headers.get("x-tapeproxy-token", "")):
                raise HTTPException(401, "open the address that `tapeproxy serve` printed: it has the token")
            try:
                response: Response = await endpoint(request)
            except TapeproxyError as error:
                raise HTTPException(422, str(error)) from None
            except NotThereError:
                raise HTTPException(404, "there is no such tape, exchange or fork") from None
            except ClientDisconnect:
                raise HTTPException(400, "the request was not sent whole") from None
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
        mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = _HEADERS | {"cache-control": "no-cache", "etag": mark}
        if request.headers.get("if-none-match", "").removeprefix("W/") == mark:
            return Response(status_code=304, headers=headers)
        kind = _KINDS.get(name[name.rfind(".") :], "text/plain")
        return Response(content, media_type=kind, headers=headers)

    async def _list(self, _request: Request) -> Response:
        rows = await run_in_threadpool(self._library.listed)
        return JSONResponse(
            [{"name": row.name, "written": row.written, "size": row.size, "recording": row.recording} for row in rows]
        )

    async def _about(self, request: Request) -> Response:
        return JSONResponse(asdict(await run_in_threadpool(self._library.about, request.path_params["name"])))

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
                raise NotThereError(str(number))
            return _dump(details(tape.exchanges[number - 1], shown.causality()))

        return _json(await run_in_threadpool(make))

    async def _search(self, request: Request) -> Response:
        text = request.query_params.get("q", "")
        if len(text) > _LONGEST_SEARCH:
            raise HTTPException(400, "what is searched for is too long")

        def make() -> list[int]:
            return find(self._library.open(request.path_params["name"]).look().tape, text)

        return JSONResponse({"numbers": await run_in_threadpool(make)})

    async def _why(self, request: Request) -> Response:
        """Where words come from: `event`, and `path`, `text`, `start` and `end` as `tapes.why.Wanted` has them."""
        params = request.query_params
        ends = [_number(request, name, 0) if name in params else None for name in ("start", "end")]
        wanted = Wanted(params.get("path"), params.get("text"), *ends)

        def make() -> str:
            shown = self._library.open(request.path_params["name"])
            found = Provenance(shown.look().tape, shown.causality()).why(_number(request, "event", 0), wanted)
            return _dump(why_document(found))

        return _json(await run_in_threadpool(make))

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        pieces = await run_in_threadpool(lambda: self._library.open(name).file())
        if pieces is None:
            raise HTTPException(404, "the tape is encrypted: `tapeproxy verify` checks it")
        return StreamingResponse(pieces, media_type="application/octet-stream")

    async def _diff(self, request: Request) -> Response:
        def tell(diff: RunDiff) -> Json:
            return {"outline": diff.outline(), "ranks": diff.ranks(), "labels": diff.labels()}

        return await self._told_of_both(request, tell)

    async def _diff_exchange(self, request: Request) -> Response:
        return await self._told_of_both(request, lambda diff: diff.exchange(request.path_params["number"]))

    async def _diff_differences(self, request: Request) -> Response:
        return await self._told_of_both(request, lambda diff: diff.differences(request.path_params["number"]))

    async def _told_of_both(self, request: Request, tell: Callable[[RunDiff], Json]) -> Response:
        names = request.query_params.get("a", ""), request.query_params.get("b", "")

        def make() -> str:
            diff = self._comparisons.of(names)
            try:
                return _dump(tell(diff))
            except KeyError as error:
                raise NotThereError(str(error)) from None

        try:
            return _json(await run_in_threadpool(make))
        except StillRecordedError:
            raise HTTPException(409, "a tape that is recorded can be compared when its run has ended") from None

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
        """What is new of a tape, from the whole of it on: so a page that comes back has lost nothing."""
        await socket.accept()
        code, why = 1000, ""
        try:
            hello = await asyncio.wait_for(socket.receive_text(), 10)
            if self._knows(_token_in(hello)):
                await self._follow(socket, socket.path_params["name"])
            else:
                code, why = 4401, "open the address that `tapeproxy serve` printed: it has the token"
        except (WebSocketDisconnect, TimeoutError, KeyError):  # KeyError: bytes instead of text
            code = 1008
        except TapeproxyError as error:
            code, why = 4422, str(error)
        except NotThereError:
            code, why = 4404, "there is no such tape"
        if WebSocketState.DISCONNECTED in (socket.client_state, socket.application_state):
            return
        try:
            if why:  # the reason of a close holds 123 bytes
                await socket.send_text(_dump({"error": why}))
            await socket.close(code)
        except (WebSocketDisconnect, RuntimeError):  # it left just now
            pass

    async def _follow(self, socket: WebSocket, name: str) -> None:
        shown = await run_in_threadpool(self._library.open, name)
        gone = asyncio.ensure_future(socket.receive())  # a page says nothing more: it leaves
        serial = 0
        try:
            while not gone.done():
                now, numbers, looked = await run_in_threadpool(shown.since, serial)
                if now != serial:
                    await self._tell(socket, name, numbers, looked)
                if looked.ending is not None:
                    return
                serial = now
                await asyncio.wait({gone}, timeout=_EVERY)
        finally:
            gone.cancel()

    async def _tell(self, socket: WebSocket, name: str, numbers: frozenset[int] | None, looked: Looked) -> None:
        def sketch() -> str:
            drawn = outline(looked.tape, looked.ending, name, only=numbers)
            return _dump({"outline": drawn, "whole": numbers is None})

        async with asyncio.timeout(_STALLED):
            await socket.send_text(await run_in_threadpool(sketch))
        for some in _batches(sorted(numbers) if numbers is not None else range(1, len(looked.tape.exchanges) + 1)):
            told = await run_in_threadpool(_label, looked, some)
            async with asyncio.timeout(_STALLED):
                await socket.send_text(told)


def _batches(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[at : at + _LABELS_LIVE] for at in range(0, len(numbers), _LABELS_LIVE)]


def _label(looked: Looked, numbers: Sequence[int]) -> str:
    return _dump({"labels": labels(looked.tape.exchanges[number - 1] for number in numbers)})


def _token_in(hello: str) -> str:
    try:
        given = json.loads(hello)
        return str(given["token"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def _failed(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "tapeproxy failed here; its terminal says more"}, 500, headers=_HEADERS)


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
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST_BODY:
            raise HTTPException(413, "the order is too long")
    try:
        given = json.loads(body)
        options = tuple((str(option), str(value)) for option, value in given["options"])
        keyless = tuple(str(name) for name in given.get("keyless", ()))
        rerun = str(given.get("rerun", "future"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise HTTPException(400, 'a fork is ordered as {"options": [["--at", "7"], …], "rerun": "future"}') from None
    return ForkOrder(options, rerun, keyless)
