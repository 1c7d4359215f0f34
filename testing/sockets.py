"""A server's end of a WebSocket: the upgrade answered, messages in and out. Knows RFC 6455 by way of wsproto."""

import asyncio
from collections.abc import AsyncIterator

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage

from tapeproxy.tapes.wsframes import accept_token
from tapeproxy.testing.inbox import Request

_READ_SIZE = 64 * 1024


def is_upgrade(request: Request) -> bool:
    """Whether a request asks for a WebSocket."""
    return request.header("upgrade").lower() == "websocket" and bool(request.header("sec-websocket-key"))


class ServerSocket:
    """An open WebSocket; iterate it for whole messages until the client closes, or has gone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._end = Connection(ConnectionType.SERVER)

    async def accept(self, request: Request, protocol: str = "") -> None:
        """Answer the upgrade; `protocol` is chosen if the client offers it."""
        offered = [name.strip() for name in request.header("sec-websocket-protocol").split(",")]
        lines = [
            "HTTP/1.1 101 Switching Protocols",
            "upgrade: websocket",
            "connection: Upgrade",
            f"sec-websocket-accept: {accept_token(request.header('sec-websocket-key').encode()).decode()}",
            *([f"sec-websocket-protocol: {protocol}"] if protocol in offered else []),
        ]
        await self._write("\r\n".join([*lines, "", ""]).encode())

    async def send(self, text: bytes) -> None:
        """Send one text message. Raises ConnectionError when the client has left."""
        await self._write(self._end.send(TextMessage(text.decode())))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say that nothing more comes."""
        if self._end.state is ConnectionState.OPEN:
            await self._write(self._end.send(CloseConnection(code, reason)))

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        held: list[str | bytes] = []
        while self._end.state is not ConnectionState.CLOSED:
            data = await self._reader.read(_READ_SIZE)
            if not data:
                return
            self._end.receive_data(data)
            for event in self._end.events():
                match event:
                    case TextMessage() | BytesMessage():
                        held.append(event.data if isinstance(event.data, str) else bytes(event.data))
                        if event.message_finished:
                            yield _joined(held)
                            held.clear()
                    case Ping():
                        await self._write(self._end.send(event.response()))
                    case CloseConnection():
                        if self._end.state is ConnectionState.REMOTE_CLOSING:
                            await self._write(self._end.send(event.response()))
                        return
                    case _:
                        pass

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def _joined(parts: list[str | bytes]) -> str | bytes:
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else b"".join(part for part in parts if isinstance(part, bytes))
