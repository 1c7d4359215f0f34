"""The line over which a page follows a tape that grows."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.web.library import Library, Looked, NotThereError
from tapeproxy.web.overview import labels, outline
from tapeproxy.web.replies import dump

_EVERY: Final = 0.15
"""Seconds between two looks at a tape that grows."""
_LABELS_LIVE: Final = 250
"""Labels in a message: each costs a parsed body."""
_STALLED: Final = 60
"""Seconds in which a page has to take a message."""


class LiveLine:
    """Tells whoever knows the token of the tapes of a library."""

    def __init__(self, library: Library, knows: Callable[[str], bool]) -> None:
        self._library = library
        self._knows = knows

    async def live(self, socket: WebSocket) -> None:
        """What is new of a tape, from the whole of it on: so a page that comes back has lost nothing."""
        await socket.accept()
        code, why = 1000, ""
        try:
            hello = await asyncio.wait_for(socket.receive_text(), 10)
            if self._knows(_token_in(hello)):
                await self._follow(socket, socket.path_params["name"])
            else:
                code, why = 4401, "open the address that `tapeproxy serve` printed: it has the token"
        except (WebSocketDisconnect, TimeoutError, KeyError):  # KeyError: bytes instead of text
            code = 1008
        except TapeproxyError as error:
            code, why = 4422, str(error)
        except NotThereError:
            code, why = 4404, "there is no such tape"
        if WebSocketState.DISCONNECTED in (socket.client_state, socket.application_state):
            return
        try:
            if why:  # the reason of a close holds 123 bytes
                await socket.send_text(dump({"error": why}))
            await socket.close(code)
        except (WebSocketDisconnect, RuntimeError):  # it left just now
            pass

    async def _follow(self, socket: WebSocket, name: str) -> None:
        shown = await run_in_threadpool(self._library.open, name)
        gone = asyncio.ensure_future(socket.receive())  # a page says nothing more: it leaves
        serial = 0
        try:
            while not gone.done():
                now, numbers, looked = await run_in_threadpool(shown.since, serial)
                if now != serial:
                    await self._tell(socket, name, numbers, looked)
                if looked.ending is not None:
                    return
                serial = now
                await asyncio.wait({gone}, timeout=_EVERY)
        finally:
            gone.cancel()

    async def _tell(self, socket: WebSocket, name: str, numbers: frozenset[int] | None, looked: Looked) -> None:
        def sketch() -> str:
            drawn = outline(looked.tape, looked.ending, name, only=numbers)
            return dump({"outline": drawn, "whole": numbers is None})

        async with asyncio.timeout(_STALLED):
            await socket.send_text(await run_in_threadpool(sketch))
        for some in _batches(sorted(numbers) if numbers is not None else range(1, len(looked.tape.exchanges) + 1)):
            told = await run_in_threadpool(_label, looked, some)
            async with asyncio.timeout(_STALLED):
                await socket.send_text(told)


def _batches(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[at : at + _LABELS_LIVE] for at in range(0, len(numbers), _LABELS_LIVE)]


def _label(looked: Looked, numbers: Sequence[int]) -> str:
    return dump({"labels": labels(looked.tape.exchanges[number - 1] for number in numbers)})


def _token_in(hello: str) -> str:
    try:
        given = json.loads(hello)
        return str(given["token"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
