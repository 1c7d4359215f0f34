"""Forks over HTTP: what one would do, its beginning, how it gets on, its end."""

import json
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tapeproxy.web.library import ForkOrder, Library

_LARGEST_BODY: Final = 1 << 20


class ForkApi:
    """Orders forks of a library's tapes."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def plan(self, request: Request) -> Response:
        order = await _order(request)
        return JSONResponse(await run_in_threadpool(self._library.plan, request.path_params["name"], order))

    async def fork(self, request: Request) -> Response:
        order = await _order(request)
        return JSONResponse(await run_in_threadpool(self._library.fork, request.path_params["name"], order))

    async def listed(self, _request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._library.forks))

    async def state(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._library.fork_state, request.path_params["number"]))

    async def stop(self, request: Request) -> Response:
        await run_in_threadpool(self._library.stop_fork, request.path_params["number"])
        return JSONResponse({})


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
