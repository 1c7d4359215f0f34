"""Connections that were led to the record wire, for mitmproxy: each looks like a tunnel that its client asked for."""

import asyncio
from collections.abc import Awaitable, Callable

from tapeproxy.proxy.led import Led, authority

type Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_END = b"\r\n\r\n"


class LedStream(asyncio.StreamReaderProtocol):
    """One connection: a CONNECT stands before what the client says, and the answer to it is kept from the client."""

    def __init__(self, led: Led, handle: Handle) -> None:
        self._led = led
        self._handle = handle
        self._first = asyncio.StreamReader()
        super().__init__(self._first, self._begin)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        place = self._led.place(transport.get_extra_info("socket"))
        if place is None:
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
            return
        name = authority(place)
        self._first.feed_data(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (name, name))
        super().connection_made(transport)

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _keep_answer(writer)
        await self._handle(reader, writer)


def _keep_answer(writer: asyncio.StreamWriter) -> None:
    """Have the first answer that is written there go nowhere; one that opens no tunnel ends the connection."""
    write = writer.write
    head = bytearray()

    def swallow(data: "bytes | bytearray | memoryview[int]") -> None:
        head.extend(data)
        if _END not in head:
            return
        writer.write = write  # type: ignore[method-assign]  # this one writer's
        if head.split(b" ", 2)[1:2] != [b"200"]:
            writer.transport.abort()
        elif rest := bytes(head).partition(_END)[2]:
            write(rest)

    writer.write = swallow  # type: ignore[method-assign]  # this one writer's
