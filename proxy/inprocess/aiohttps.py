"""Leads aiohttp to the route."""

import functools
from typing import Any
from weakref import WeakKeyDictionary

from tapeproxy.proxy.inprocess.journal import Journal
from tapeproxy.proxy.inprocess.routes import Origin, Pipe, fits, route_to

_pipes: WeakKeyDictionary[Any, Pipe] = WeakKeyDictionary()
"""By the transport that aiohttp's protocols have."""


def patch_connector(module: Any, journal: Journal) -> None:
    """`aiohttp.connector`: new connections become pipes, and those that do not fit leave the pool."""
    create, connect = module.TCPConnector._create_connection, module.BaseConnector.connect

    @functools.wraps(create)
    async def create_connection(self: Any, req: Any, *args: Any, **options: Any) -> Any:
        host, port = req.url.raw_host, req.url.port
        route = route_to(host, port)
        if route is None:
            return await create(self, req, *args, **options)
        pipe = Pipe.open(route, Origin("https" if req.is_ssl() else "http", host, port))
        pipe.setblocking(False)
        pipe.begin(direct=False)
        transport, protocol = await self._loop.create_connection(self._factory, sock=pipe)
        _pipes[transport] = pipe
        return protocol

    @functools.wraps(connect)
    async def connect_fitting(self: Any, req: Any, *args: Any, **options: Any) -> Any:
        for waiting in list(self._conns.values()):
            for entry in list(waiting):
                if not fits(_pipes.get(entry[0].transport), req.url.raw_host, req.url.port):
                    waiting.remove(entry)
                    entry[0].close()
        return await connect(self, req, *args, **options)

    journal.replace(module.TCPConnector, "_create_connection", create_connection)
    journal.replace(module.BaseConnector, "connect", connect_fitting)
