"""Both ends of a WebSocket for tests of the wires: what is sent is said frame by frame, as wsproto writes it."""

import socket
from collections.abc import Awaitable, Callable
from typing import Self

import wsproto
import wsproto.events as ws
from origin import Call, Handler
from wsproto.extensions import Extension, PerMessageDeflate

type Talk = Callable[["ServerEnd"], Awaitable[None]]


class ServerEnd:
    """An origin's end, accepted: `say` sends an event, `hear` waits for the next one."""

    def __init__(self, call: Call, server: wsproto.WSConnection) -> None:
        self.call = call
        self._ws = server

    async def say(self, *events: ws.Event) -> None:
        """Send events in one write."""
        await self.call.send(b"".join(self._ws.send(event) for event in events))

    async def hear(self) -> ws.Event:
        while True:
            for event in self._ws.events():
                return event
            data = await self.call.read()
            self._ws.receive_data(data or None)

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        """Close in order: say it, and wait for the client's word."""
        await self.say(ws.CloseConnection(code, reason))
        while not isinstance(await self.hear(), ws.CloseConnection):
            pass
        self.call.close()


def accepting(talk: Talk, subprotocol: str | None = None, *, deflate: bool = False) -> Handler:
    """An origin's handler that accepts a WebSocket, `subprotocol` if it is offered, and goes on with `talk`."""

    async def handle(call: Call) -> None:
        server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        lines = "".join(f"{name}: {value}\r\n" for name, value in call.request.headers)
        server.receive_data(f"GET {call.request.target} HTTP/1.1\r\n{lines}\r\n".encode())
        (request,) = server.events()
        assert isinstance(request, ws.Request)
        chosen = subprotocol if subprotocol in request.subprotocols else None
        known: list[Extension] = [PerMessageDeflate()] if deflate else []
        await call.send(server.send(ws.AcceptConnection(chosen, extensions=known)))
        await talk(ServerEnd(call, server))

    return handle


async def echo(end: ServerEnd) -> None:
    """Send every text back twice, the second time reversed; close when the client does."""
    while True:
        match await end.hear():
            case ws.TextMessage(data=text):
                await end.say(ws.TextMessage(text), ws.TextMessage(text[::-1]))
            case ws.Ping() as ping:
                await end.say(ping.response())
            case ws.CloseConnection() as closing:
                if closing.code != 1006:  # the client has gone
                    await end.say(closing.response())
                end.call.close()
                return


class WsClient:
    """A client's end on a socket that leads to the server, or to a proxy that is asked for `target`."""

    def __init__(
        self,
        sock: socket.socket,
        host: str,
        target: str,
        *,
        deflate: bool = False,
        headers: dict[str, str] | None = None,
        subprotocols: tuple[str, ...] = (),
    ) -> None:
        self.sock = sock
        self._ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        known: list[Extension] = [PerMessageDeflate()] if deflate else []
        extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        request = ws.Request(
            host=host, target=target, extensions=known, extra_headers=extra, subprotocols=list(subprotocols)
        )
        sock.sendall(self._ws.send(request))

    def accepted(self) -> Self:
        opened = self.next()
        assert isinstance(opened, ws.AcceptConnection), opened
        return self

    def say(self, *events: ws.Event) -> None:
        """Send events in one write."""
        self.sock.sendall(b"".join(self._ws.send(event) for event in events))

    def send(self, *texts: str) -> None:
        self.say(*map(ws.TextMessage, texts))

    def close(self, code: int = 1000, reason: str | None = None) -> ws.Event:
        """Close in order; returns the server's word."""
        self.say(ws.CloseConnection(code, reason))
        return self.next()

    def next(self) -> ws.Event:
        """The next event; a cut is a close with code 1006."""
        while True:
            for event in self._ws.events():
                return event
            try:
                data = self.sock.recv(65536)
            except ConnectionError:
                data = b""
            self._ws.receive_data(data or None)

    def texts(self, count: int) -> list[str]:
        """The next so many texts, put together from their frames."""
        out: list[str] = []
        text = ""
        while len(out) < count:
            event = self.next()
            if isinstance(event, ws.TextMessage):
                text += event.data
                if event.message_finished:
                    out.append(text)
                    text = ""
            else:
                assert isinstance(event, ws.Ping | ws.Pong), event
        return out
