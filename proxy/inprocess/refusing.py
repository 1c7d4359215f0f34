"""A proxy on loopback that refuses everything: for programs that code within a replay starts.

What it is asked is a violation of the replay in force, for the program may take no notice of being refused.
"""

import asyncio
import os
import threading

from tapeproxy.proxy.inprocess import routes
from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.tapes.violations import Violation

_HEAD = 1 << 16
_PATIENCE = 10.0
"""Seconds in which a request has to have come."""


class Refuser:
    """It listens from the first program on."""

    _current: "Refuser | None" = None
    _making = threading.Lock()

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.port = Background.get().run(self._listen())

    @classmethod
    def get(cls) -> "Refuser":
        """That of this process."""
        with cls._making:
            if cls._current is None or cls._current.pid != os.getpid():
                cls._current = cls()
            return cls._current

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._refuse, "127.0.0.1", 0, limit=_HEAD)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
            asked = f"{method} {rest.rpartition(' ')[0] or rest}"
            route = routes.top()
            if route is not None:
                route.refuses(asked)
            what = "a program that was started within a replay asked for it: tape.run gives it a tape of its own"
            writer.write(Violation("egress", asked, what).to_answer())
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # it has left, or speaks no HTTP
        finally:
            writer.close()
