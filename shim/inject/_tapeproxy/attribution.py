"""Says on every request that goes to the wire which lane made it: `x-tapeproxy-lane: LANE#n@reads`.

A lane that has slept since its last request adds `~SLEEPS.AWAKE`: how often, and after how many reads the first time.

Knows where HTTP clients write headers, and whether they write to the wire: the peer counts, not the target. The header
is added below what the agent can see, once, never on CONNECT. aiohttp ignores proxies unless told not to, so its
requests are sent by way of the one in the environment.
"""

from __future__ import annotations

from . import channel, clock, completion, hooks, settings
from .lanes import LANE, current
from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HEADER = "x-tapeproxy-lane"
_HEADER = HEADER.encode()
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _parse(text: str) -> tuple[str, int] | None:
    host, _, port = text.strip().rpartition(":")
    return (_normal(host), int(port)) if host and port.isdigit() else None


def _normal(host: str) -> str:
    host = host.strip("[]").lower()
    return _LOOPBACK[0] if host in _LOOPBACK else host


direct = settings.LED
"""Whether clients get to the wire without a proxy: where all is led there, and within somebody else's interpreter,
which has its own `is_wire`."""
_wire = _parse(settings.PROXY)


def is_wire(host: Any, port: Any) -> bool:
    """Whether these, as a client has them, mean the wire."""
    if isinstance(host, (bytes, bytearray)):
        host = host.decode("latin-1")
    if port in settings.FRONTS and isinstance(host, str) and _normal(host) == _LOOPBACK[0]:
        return True
    if settings.LED and isinstance(host, str) and _normal(host) != _LOOPBACK[0]:
        return True
    return _wire is not None and port == _wire[1] and isinstance(host, str) and _normal(host) == _wire[0]


def tag() -> str:
    """The value for the next request of the current lane."""
    lane = LANE.get(None) or current()
    lane.tell()
    if settings.EDGES:
        from . import edges

        edges.absorb(lane, own=True)
        edges.visit(lane)
    number = lane.requests
    text = f"{lane.id}#{number}@{clock.ask(lane)}"
    lane.requests = number + 1
    if settings.SEEDS:
        from . import randomness

        randomness.reseed(lane)
    if not number:
        completion.watch(lane)
    if lane.sleeps:
        text += f"~{lane.sleeps}.{lane.awake}"
        lane.sleeps = 0
    return text


def install() -> None:
    """Wait for the clients."""
    hooks.on_import("http.client", _patch_http_client)
    hooks.on_import("httpcore", _patch_httpcore)
    hooks.on_import("httpcore2", _patch_httpcore)
    hooks.on_import("aiohttp.client_reqrep", _patch_aiohttp_request)
    hooks.on_import("aiohttp.client", _patch_aiohttp_session)
    hooks.on_import("grpc._compression", _patch_grpc)
    hooks.on_import("grpc.aio._channel", _patch_grpc_aio)
    for name in ("websockets.sync.client", "websockets.asyncio.client", "websocket._handshake"):
        hooks.on_import(name, _patch_socket_client)


def _patch_socket_client(module: Any) -> None:
    from . import socketlanes  # most programs have none

    socketlanes.patch(module)


def _patch_http_client(module: Any) -> None:
    """urllib, requests, urllib3 and botocore, too: all end their headers here."""
    cls = module.HTTPConnection
    endheaders = cls.endheaders

    def endheaders_with_lane(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt(_add_to_buffer, self)
        return endheaders(self, *args, **kwargs)

    cls.endheaders = resemble(endheaders_with_lane, endheaders)


def attempt(add: Callable[..., None], *args: Any) -> None:
    """Add a header; the agent's request goes without one rather than not at all."""
    try:
        add(*args)
    except Exception as error:
        channel.emit("note", what="request-without-lane", text=repr(error), data=None)


def _add_to_buffer(connection: Any) -> None:
    lines = connection._buffer
    if not is_wire(connection.host, connection.port):
        return
    if lines and not lines[0].startswith(b"CONNECT ") and not any(_is_header(line) for line in lines):
        lines.append(_HEADER + b": " + tag().encode())


def _is_header(line: bytes) -> bool:
    return line[: len(_HEADER)].lower() == _HEADER


def _patch_httpcore(module: Any) -> None:
    """httpx and httpx2, and so the SDKs of OpenAI and Anthropic, old and new."""
    pool, async_pool = module.ConnectionPool, module.AsyncConnectionPool
    handle, handle_async = pool.handle_request, async_pool.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        attempt(_add_to_request, self, request)
        return handle(self, request)

    async def handle_async_request(self: Any, request: Any) -> Any:
        attempt(_add_to_request, self, request)
        return await handle_async(self, request)

    pool.handle_request = resemble(handle_request, handle)
    async_pool.handle_async_request = resemble(handle_async_request, handle_async)


def _add_to_request(pool: Any, request: Any) -> None:
    # HTTPProxy pools have _proxy_url; since 1.0.6 any pool may have a _proxy.
    url = getattr(pool, "_proxy_url", None) or getattr(getattr(pool, "_proxy", None), "url", None)
    if url is None and direct:
        url = request.url.origin
    if url is None or not is_wire(url.host, url.port) or request.method == b"CONNECT":
        return
    headers = list(request.headers)
    if not any(name.lower() == _HEADER for name, _ in headers):
        request.headers = [*headers, (_HEADER, tag().encode())]


def _patch_grpc(module: Any) -> None:
    """Every call of a channel of gRPC has its metadata made here. Where its channel leads is not known here."""
    augment = module.augment_metadata

    def augment_metadata(metadata: Any, compression: Any) -> Any:
        return (*(augment(metadata, compression) or ()), *_tagged(metadata))

    module.augment_metadata = resemble(augment_metadata, augment)


def _patch_grpc_aio(module: Any) -> None:
    cls = module._BaseMultiCallable
    init = cls._init_metadata

    def init_metadata(metadata: Any = None, compression: Any = None) -> Any:
        # With a compression it asks the function above, which has tagged it.
        made = init(metadata, compression)
        return made if compression else type(made)(*made, *_tagged(made))  # never the agent's own object

    cls._init_metadata = staticmethod(resemble(init_metadata, init))


def _tagged(metadata: Any) -> Any:
    """The pair to be added to the metadata of a call, if any."""
    pairs: list[tuple[str, str]] = []
    attempt(_add_to_metadata, pairs, metadata)
    return pairs


def _add_to_metadata(pairs: list[tuple[str, str]], metadata: Any) -> None:
    if _wire is not None and not any(key == HEADER for key, _ in metadata or ()):
        pairs.append((HEADER, tag()))


def _patch_aiohttp_request(module: Any) -> None:
    cls = module.ClientRequest
    send = cls.send

    async def send_with_lane(self: Any, *args: Any, **kwargs: Any) -> Any:
        agents = HEADER in self.headers
        attempt(_add_to_headers, self)
        try:
            return await send(self, *args, **kwargs)
        finally:
            if not agents:  # the response shows its request's headers to the agent
                self.headers.popall(HEADER, None)

    cls.send = resemble(send_with_lane, send)


def _add_to_headers(request: Any) -> None:
    proxy = request.url if direct and request.proxy is None else request.proxy
    if proxy is None or not is_wire(proxy.host, proxy.port) or request.method == "CONNECT":
        return
    if HEADER not in request.headers:
        request.headers[HEADER] = tag()


def _patch_aiohttp_session(module: Any) -> None:
    """Give each request the environment's proxy. trust_env would do so, and read ~/.netrc, too."""
    cls = module.ClientSession
    request = cls._request

    async def request_by_proxy(self: Any, method: Any, str_or_url: Any, **kwargs: Any) -> Any:
        if kwargs.get("proxy") is None and not self.trust_env and getattr(self, "_default_proxy", None) is None:
            kwargs["proxy"] = _environment_proxy(self, str_or_url)
        return await request(self, method, str_or_url, **kwargs)

    cls._request = resemble(request_by_proxy, request)


def _environment_proxy(session: Any, target: Any) -> str | None:
    """The proxy for this request, as urllib would have it from the environment."""
    from urllib.request import getproxies, proxy_bypass

    try:
        url = session._build_url(target)
    except Exception:  # whatever it is, the request will say so itself
        return None
    if url.host is None or proxy_bypass(url.host):
        return None
    return getproxies().get({"ws": "http", "wss": "https"}.get(url.scheme) or url.scheme)
