"""Leads httpcore (httpx, the SDKs of OpenAI and Anthropic) and its successor httpcore2 to the route, sync and async."""

import functools
import select
import socket
from collections.abc import Callable
from typing import Any

from tapeproxy.proxy.inprocess.journal import Journal
from tapeproxy.proxy.inprocess.routes import Origin, Pipe, fits, route_to

type Method = Callable[..., Any]


def patch_sync(module: Any, journal: Journal) -> None:
    """`httpcore._backends.sync`: connections become pipes."""
    owner = module.SyncBackend
    journal.replace(owner, "connect_tcp", _connect(owner.connect_tcp, module))


def patch_async(package: str, backend: str) -> Callable[[Any, Journal], None]:
    """`httpcore._backends.anyio` and `.trio`: both get one stream, which waits by anyio."""

    def patch(module: Any, journal: Journal) -> None:
        owner = getattr(module, backend)
        journal.replace(owner, "connect_tcp", _connect_async(owner.connect_tcp, package))

    return patch


def patch_pool(name: str) -> Callable[[Any, Journal], None]:
    """A class of pooled connections: the pool passes over those that do not fit."""

    def patch(module: Any, journal: Journal) -> None:
        owner = getattr(module, name, None)
        if owner is not None:
            journal.replace(owner, "can_handle_request", _can_handle(owner.can_handle_request))

    return patch


# Kept by what they stand for: every context needs them anew, and a class takes longer to make than an answer to give.
@functools.cache
def _connect(original: Method, module: Any) -> Method:
    class PipeStream(module.SyncStream):  # type: ignore[misc]  # its module is only known at run time
        def start_tls(self, *_: Any, **__: Any) -> Any:
            self._sock.wrap()
            return self

    @functools.wraps(original)
    def connect_tcp(self: Any, host: str, port: int, *args: Any, **options: Any) -> Any:
        route = route_to(host, port)
        if route is None:
            return original(self, host, port, *args, **options)
        return PipeStream(Pipe.open(route, Origin("http", host, port)))

    return connect_tcp


@functools.cache
def _connect_async(original: Method, package: str) -> Method:
    @functools.wraps(original)
    async def connect_tcp(self: Any, host: str, port: int, *args: Any, **options: Any) -> Any:
        route = route_to(host, port)
        if route is None:
            return await original(self, host, port, *args, **options)
        return _async_stream(package)(Pipe.open(route, Origin("http", host, port)))

    return connect_tcp


@functools.cache
def _can_handle(original: Method) -> Method:
    @functools.wraps(original)
    def can_handle_request(self: Any, origin: Any) -> bool:
        return bool(original(self, origin)) and _is_of_now(self, origin.host.decode("latin-1"), origin.port)

    return can_handle_request


def _is_of_now(connection: Any, host: str, port: int) -> bool:
    """Whether a pooled connection may be used; one that is not connected yet may."""
    inner = connection
    while inner is not None:
        stream = getattr(inner, "_network_stream", None)
        if stream is not None:
            return fits(getattr(stream, "_sock", None), host, port)
        inner = getattr(inner, "_connection", None)
    return True


@functools.cache
def _async_stream(package: str) -> Any:
    import importlib

    import anyio

    core = importlib.import_module(package)
    base = importlib.import_module(f"{package}._backends.base").AsyncNetworkStream
    mapped = importlib.import_module(f"{package}._exceptions").map_exceptions
    readable = getattr(anyio, "wait_readable", None) or anyio.wait_socket_readable
    writable = getattr(anyio, "wait_writable", None) or anyio.wait_socket_writable

    class AsyncPipeStream(base):  # type: ignore[misc, valid-type]  # as above
        def __init__(self, pipe: Pipe) -> None:
            pipe.setblocking(False)
            self._sock = pipe

        async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            with mapped({TimeoutError: core.ReadTimeout, OSError: core.ReadError}), anyio.fail_after(timeout):
                while True:
                    try:
                        return self._sock.recv(max_bytes)
                    except BlockingIOError:
                        await readable(self._sock)

        async def write(self, buffer: bytes, timeout: float | None = None) -> None:
            rest = memoryview(buffer)
            with mapped({TimeoutError: core.WriteTimeout, OSError: core.WriteError}), anyio.fail_after(timeout):
                while rest:
                    try:
                        rest = rest[self._sock.send(rest) :]
                    except BlockingIOError:
                        await writable(self._sock)

        async def aclose(self) -> None:
            self._sock.close()

        async def start_tls(self, *_: Any, **__: Any) -> Any:
            self._sock.wrap()
            return self

        def get_extra_info(self, info: str) -> Any:
            if info == "socket":
                return self._sock
            return _is_readable(self._sock) if info == "is_readable" else None

    return AsyncPipeStream


def _is_readable(sock: socket.socket) -> bool:
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
