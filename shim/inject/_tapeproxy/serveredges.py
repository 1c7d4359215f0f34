"""A server of the run learns what its client knew, and the client with the answer what the server knew.

Knows where Python's HTTP servers have read a request, and where they have answered it. Who the client is only the wire
can say, which is asked from one of its ports: a request is told as `@PORT#N`, the N-th on the connection from there.
"""

from __future__ import annotations

from . import channel
from .edges import emit_out, emit_request
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COUNT = "_tapeproxy_requests"
_TOKEN = "_tapeproxy_request"


def _begin(connection: Any, peer: Any) -> str | None:
    """A request was read on the connection from `peer`; its token. None: it did not come over TCP."""
    if not isinstance(peer, tuple) or len(peer) < 2:
        return None
    number = getattr(connection, _COUNT, 0)
    setattr(connection, _COUNT, number + 1)
    token = f"@{peer[1]}#{number}"
    emit_request(token)
    return token


def _safely_begin(connection: Any, peer: Any) -> str | None:
    try:
        return _begin(connection, peer)
    except Exception as error:  # the request is served, whatever we could not tell of it
        channel.emit("note", what="edge-failed", text=repr(error), data=None)
        return None


def patch_http_server(module: Any) -> None:
    """http.server, and so wsgiref and werkzeug: a handler for each connection, which may go its own way with it."""
    cls = module.BaseHTTPRequestHandler
    parse, handle, finish = cls.parse_request, cls.handle_one_request, cls.finish

    def parse_request(self: Any) -> bool:
        _end(self)
        good: bool = parse(self)
        if good:
            self.__dict__[_TOKEN] = _safely_begin(self, self.client_address)
        return good

    def handle_one_request(self: Any) -> None:
        try:
            handle(self)
        finally:
            _end(self)

    def finish_and_tell(self: Any) -> None:
        _end(self)
        finish(self)

    cls.parse_request = resemble(parse_request, parse)
    cls.handle_one_request = resemble(handle_one_request, handle)
    cls.finish = resemble(finish_and_tell, finish)


def _end(handler: Any) -> None:
    """What the handler has read is answered."""
    token = handler.__dict__.pop(_TOKEN, None)
    if token is not None:
        emit_out("answer", token)


def patch_uvicorn(module: Any) -> None:
    """uvicorn, under either of its parsers: a cycle for each request, with a task of its own."""
    cls = module.RequestResponseCycle
    run = cls.run_asgi

    async def run_asgi(self: Any, app: Any) -> None:
        token = _safely_begin(self.flow, self.scope.get("client"))
        try:
            await run(self, app)
        finally:
            if token is not None:
                emit_out("answer", token)

    cls.run_asgi = resemble(run_asgi, run)


def patch_aiohttp(module: Any) -> None:
    """aiohttp's server: a handler for each connection, with a task of its own."""
    cls = module.RequestHandler
    handle = cls._handle_request

    async def handle_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        peer = None if request.transport is None else request.transport.get_extra_info("peername")
        token = _safely_begin(request.task, peer)
        try:
            return await handle(self, request, *args, **kwargs)
        finally:
            if token is not None:
                emit_out("answer", token)

    cls._handle_request = resemble(handle_request, handle)
