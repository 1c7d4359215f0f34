"""Modules that keep the real clock: locks, event loops and connection pools, whose reads decide when, not what.

On a lane's clock they would wait for the wrong time, or for ever; and how often they look at it is chance, which would
move every later read of the lane. Everything else, and all that an agent's data can come from, is on the lanes' clocks.
"""

from __future__ import annotations

import time as _time

from . import clock, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

MODULES = (
    *("asyncio.base_events", "asyncio.windows_events", "concurrent.futures._base"),
    *("multiprocessing.connection", "multiprocessing.managers", "multiprocessing.pool", "multiprocessing.queues"),
    *("multiprocessing.synchronize", "queue", "socketserver", "subprocess", "telnetlib", "threading"),
    "aiohttp.connector",
    *("billiard.connection", "billiard.pool", "billiard.queues", "billiard.synchronize"),
    *("curio.kernel", "curio.timequeue"),
    *("eventlet.hubs.hub", "eventlet.hubs.timer"),
    *("filelock._api", "filelock._async_lock._acquire", "filelock._core._acquire", "filelock.asyncio"),
    *("gevent._threading", "gevent.threadpool"),
    *("grpc._channel", "grpc._common", "grpc._server", "grpc._utilities", "grpc.aio._utils"),
    *("httpcore._async.http11", "httpcore._async.http2", "httpcore._sync.http11", "httpcore._sync.http2"),
    *("httpcore2._async.http11", "httpcore2._async.http2", "httpcore2._sync.http11", "httpcore2._sync.http2"),
    "portalocker.utils",
    *("psycopg.connection", "psycopg.connection_async", "psycopg.waiting"),
    *("psycopg_pool._acompat", "psycopg_pool.base", "psycopg_pool.pool", "psycopg_pool.pool_async"),
    *("psycopg_pool.sched", "psycopg_pool.sched_async"),
    *("pymongo._csot", "pymongo.network_layer", "pymongo.periodic_executor", "pymongo.pool_shared"),
    *("pymongo.asynchronous.monitor", "pymongo.asynchronous.pool", "pymongo.asynchronous.topology"),
    *("pymongo.server_description", "pymongo.synchronous.monitor"),
    *("pymongo.synchronous.pool", "pymongo.synchronous.topology"),
    *("redis.asyncio.connection", "redis.connection"),
    "sqlalchemy.util.queue",
    "tornado.ioloop",
    "trio._core._run",
    *("twisted.internet.selectreactor", "twisted.internet.task", "twisted.python.runtime"),
    "urllib3.util.timeout",
    *("websockets.sync.connection", "websockets.sync.utils"),
    "zmq.eventloop.ioloop",
)
"""Only modules that take the time for their own waiting: no logger, cache or signature of a request."""


def install() -> None:
    """Give each of the modules the real clock as soon as it is imported."""
    for name in MODULES:
        hooks.on_import(name, quiet)


def quiet(module: ModuleType) -> None:
    """Replace the module's `time`, and what it took from there, by the real ones, also in its classes."""
    reals: dict[int, Any] = {id(replacement): real for replacement, real in clock.pairs()}
    reals[id(_time)] = clock.REAL
    _restore(module, reals)
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            _restore(value, reals)


def _restore(holder: ModuleType | type, reals: dict[int, Any]) -> None:
    for name, value in list(vars(holder).items()):
        real = reals.get(id(value.__func__ if isinstance(value, staticmethod) else value))
        if real is not None:
            setattr(holder, name, staticmethod(real) if isinstance(value, staticmethod) else real)
