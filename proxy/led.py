"""A run whose every connection is led to the wire (`--local`): the ports that take them, and the names they go by.

Knows the namespace's redirection and DNS; what a wire makes of a connection, and which names there are, it is told.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tapeproxy.proxy import redirection
from tapeproxy.tapes.dnsanswers import (
    Names,
    Question,
    address_answer,
    failed_answer,
    parse_question,
    unknown_answer,
)
from tapeproxy.tapes.errors import UsageError

NOBODY = "no-name"
"""The note on a tape of a name that was looked up in vain; `host` in its data."""
LED_VARIABLE = "TAPEPROXY_LED"
"""Set to 1 for the shim: every connection of the run comes to the wire."""

type Exists = Callable[[str], Awaitable[bool]]
type Protocols = Callable[["Led"], asyncio.BaseProtocol]


@dataclass(slots=True)
class Led:
    """The ports and names of one run. `exists` says whether there is a name, or raises OSError where nobody knows."""

    exists: Exists
    names: Names = field(default_factory=Names)
    _port: int = 0
    _servers: list[asyncio.Server] = field(default_factory=list[asyncio.Server])
    _asked: asyncio.DatagramTransport | None = None

    async def open(self, protocols: Protocols, loopback: Iterable[int]) -> None:
        """Take all connections of this namespace from here on, each with a protocol of `protocols`.

        `loopback`: the ports of loopback at which somebody outside is meant. Raises UsageError where the kernel does
        not do that.
        """
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(lambda: protocols(self), "127.0.0.1", 0)
            self._servers.append(server)
            self._port = server.sockets[0].getsockname()[1]
            with contextlib.suppress(OSError):  # there may be no IPv6
                self._servers.append(await loop.create_server(lambda: protocols(self), "::1", self._port))
            asked, _ = await loop.create_datagram_endpoint(lambda: _Asked(self), ("127.0.0.1", 0))
            self._asked = asked
            redirection.redirect(self._port, asked.get_extra_info("sockname")[1], loopback)
        except OSError as error:
            self.close()
            what = f"--local needs a kernel with nf_tables: {(error.strerror or str(error)).lower()}"
            raise UsageError(what, fix="leave it out; docs/CLIENTS.md has the other ways") from None

    def place(self, connection: socket.socket) -> redirection.Place | None:
        """Host and port that a connection was made to; None where it was to this very port."""
        try:
            address, port = redirection.original(connection)
        except OSError:
            return None
        host = self.names.name(address) or address
        return None if port == self._port and host in ("127.0.0.1", "::1") else (host, port)

    def close(self) -> None:
        """Take no more."""
        for server in self._servers:
            server.close()
        if self._asked is not None:
            self._asked.close()

    async def answer(self, question: Question) -> bytes:
        """What is said to a question."""
        try:
            known = await self.exists(question.name)
        except OSError:
            return failed_answer(question)
        return address_answer(question, self.names.address(question.name)) if known else unknown_answer(question)


class _Asked(asyncio.DatagramProtocol):
    """Answers in the place of every name server."""

    def __init__(self, led: Led) -> None:
        self._led = led
        self._answering = set[asyncio.Task[None]]()
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if (question := parse_question(data)) is None:
            return
        task = asyncio.get_running_loop().create_task(self._answer(question, addr))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, question: Question, addr: Any) -> None:
        said = await self._led.answer(question)
        if not self._transport.is_closing():
            self._transport.sendto(said, addr)


def search_domains(path: Path = Path("/etc/resolv.conf")) -> tuple[str, ...]:
    """What resolvers put behind a name to see whether that is one (resolv.conf(5))."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(word.lower().strip(".") for line in lines if line[:1] in (["search"], ["domain"]) for word in line[1:])


def authority(place: redirection.Place) -> bytes:
    """HOST:PORT, as a CONNECT has it."""
    host, port = place
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
