"""A client of many replays until it is known which one it means: reads the first head, then hands the connection over.

Knows the head's headers, nothing else of HTTP: whoever takes the connection over reads it all again, and checks what is
believed here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from tapeproxy.proxy.requestreader import MAX_HEAD
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.credentials import RefusedError
from tapeproxy.tapes.records import Headers

_HEAD_SECONDS = 60.0
"""Within which the first head has to come."""

type Admit = Callable[[int, Headers], Awaitable[tuple[TapeServer, Callable[[Headers], Headers | bytes]]]]
"""From the port that a client came by and its headers to the server that takes it over, and what checks later heads.

Raises RefusedError.
"""


class Reception(asyncio.Protocol):
    """One connection that belongs to no run yet. `refused` is told when it never will; `admit` decides."""

    def __init__(self, admit: Admit, refused: Callable[[RefusedError], None]) -> None:
        self._admit = admit
        self._refused = refused
        self._data = b""
        self._transport: asyncio.Transport
        self._asking: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._late = asyncio.get_running_loop().call_later(_HEAD_SECONDS, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            if len(self._data) > MAX_HEAD:
                self._turn_away(RefusedError("what came is no request of HTTP/1.1"))
            return
        self._late.cancel()
        self._transport.pause_reading()
        port: int = self._transport.get_extra_info("sockname")[1]
        self._asking = asyncio.get_running_loop().create_task(self._ask(port, headers_of(self._data[:end])))

    async def _ask(self, port: int, headers: Headers) -> None:
        try:
            server, check = await self._admit(port, headers)
        except RefusedError as error:
            self._turn_away(error)
            return
        except Exception as error:  # a bug of ours must neither let anybody in nor leave anybody waiting
            self._turn_away(RefusedError(f"a bug in tapeproxy: {type(error).__name__}: {error}", status=503))
            return
        self._asking = None  # this task is not to be cancelled by what the next protocol does
        if not self._transport.is_closing():
            server.take_over(self._transport, self._data, check)

    def _turn_away(self, error: RefusedError) -> None:
        self._refused(error)
        self._transport.write(error.to_answer())
        self._transport.close()


def headers_of(head: bytes) -> Headers:
    """The headers of a request's head, the lines after its first, as far as they are `name: value`."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return tuple((name.strip(), value.strip()) for name, mark, value in lines if mark)
