"""How `stop NAME`, `status` and `env --tape` talk to the proxy that `start` runs: a line of JSON each way.

It listens on loopback, and does what is asked only for those who know the key, which stands in the proxy's state file
and so can be read by this user alone.
"""

import asyncio
import contextlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from tapeproxy.proxy.state import NoProxyError, State
from tapeproxy.tapes.errors import TapeproxyError

_LONGEST = 1 << 16
_PATIENCE = 60.0
"""Seconds that an answer may take: a run's last exchanges are waited for, and its tape is read back."""
_HOST = "127.0.0.1"

type Verb = Callable[[str], Awaitable[Mapping[str, Any]]]
"""What is done for a word and a name; raises TapeproxyError for what the asker should hear."""


class ControlServer:
    """Listens for orders. `verbs`: what can be asked for."""

    def __init__(self, key: str, verbs: Mapping[str, Verb]) -> None:
        self.port = 0
        self._key = key
        self._verbs = verbs
        self._server: asyncio.Server

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        self._server = await asyncio.start_server(self._serve, _HOST, 0, limit=_LONGEST)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Take no more orders; those that are being carried out are answered."""
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                asked = await reader.readuntil(b"\n")
                writer.write(orjson.dumps(await self._answer(asked)) + b"\n")
                await writer.drain()
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever it was has left, or is none of ours
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, line: bytes) -> Mapping[str, Any]:
        try:
            asked = orjson.loads(line)
            key, verb, name = str(asked["key"]), self._verbs.get(asked["verb"]), str(asked["name"])
        except (ValueError, TypeError, KeyError):
            return _error("what was asked cannot be read")
        if not hmac.compare_digest(key.encode(errors="replace"), self._key.encode()):
            return _error("the key is another one")
        if verb is None:
            return _error("the proxy does not know how to do this", fix="is it of another version? Start it anew")
        try:
            return await verb(name)
        except TapeproxyError as error:
            return _error(error.what, error.where, error.fix)
        except Exception as error:
            return _error(f"a bug in tapeproxy: {type(error).__name__}: {error}")


def ask(state: State, verb: str, name: str = "") -> Mapping[str, Any]:
    """Have the running proxy do something; returns its answer. Raises NoProxyError with what it says against it."""
    order = orjson.dumps({"key": state.key, "verb": verb, "name": name.encode(errors="replace").decode()}) + b"\n"
    try:
        with socket.create_connection((_HOST, state.control), _PATIENCE) as connection:
            connection.sendall(order)
            answer = orjson.loads(connection.makefile("rb").readline())
    except (OSError, ValueError) as error:
        what = f"the proxy (process {state.pid}) does not answer: {error}"
        raise NoProxyError(what, fix=f"end it with: kill {state.pid}") from None
    match answer:
        case {"error": {"what": str(what), "where": str(where), "fix": str(fix)}}:
            raise NoProxyError(what, where=where, fix=fix)
        case dict():
            return answer
        case _:
            raise NoProxyError(f"the proxy (process {state.pid}) gave an answer that is none")


def _error(what: str, where: str = "", fix: str = "") -> dict[str, Any]:
    return {"error": {"what": what, "where": where, "fix": fix}}
