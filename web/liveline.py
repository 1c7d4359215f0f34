"""The line over which a page follows a tape that grows."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.web.library import Library, Looked, NotThereError, Shown
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
        """What is new of a tape since the place that the page names; the whole of it where that is none of ours.

        After each piece of news comes its place, `at`: so a page that comes back has lost nothing.
        """
        await socket.accept()
        code, why = 1000, ""
        try:
            hello = await asyncio.wait_for(socket.receive_text(), 10)
            if self._knows(_text_in(hello, "token")):
                await self._follow(socket, socket.path_params["name"], _text_in(hello, "at"))
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

    async def _follow(self, socket: WebSocket, name: str, at: str) -> None:
        shown = await run_in_threadpool(self._library.open, name)
        gone = asyncio.ensure_future(socket.receive())  # a page says nothing more: it leaves
        serial, told = serial_in(shown, at), None
        try:
            while not gone.done():
                now, numbers, looked = await run_in_threadpool(shown.since, serial)
                if now != serial:
                    await self._tell(socket, name, numbers, looked)
                if now != told:
                    await _send(socket, dump({"at": place_in(shown, now)}))
                if looked.ending is not None:
                    return
                serial = told = now
                await asyncio.wait({gone}, timeout=_EVERY)
        finally:
            gone.cancel()

    async def _tell(self, socket: WebSocket, name: str, numbers: frozenset[int] | None, looked: Looked) -> None:
        def sketch() -> str:
            drawn = outline(looked.tape, looked.ending, name, only=numbers)
            return dump({"outline": drawn, "whole": numbers is None})

        await _send(socket, await run_in_threadpool(sketch))
        for some in _batches(sorted(numbers) if numbers is not None else range(1, len(looked.tape.exchanges) + 1)):
            await _send(socket, await run_in_threadpool(_label, looked, some))


def place_in(shown: Shown, serial: int) -> str:
    """What a page names to have what comes after it."""
    return f"{shown.identity}:{serial}"


def serial_in(shown: Shown, place: str) -> int:
    """The number in such a name; 0 where it is of another time or tape."""
    identity, _, serial = place.rpartition(":")
    return int(serial) if identity == shown.identity and serial.isascii() and serial.isdecimal() else 0


async def _send(socket: WebSocket, text: str) -> None:
    async with asyncio.timeout(_STALLED):
        await socket.send_text(text)


def _batches(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[at : at + _LABELS_LIVE] for at in range(0, len(numbers), _LABELS_LIVE)]


def _label(looked: Looked, numbers: Sequence[int]) -> str:
    return dump({"labels": labels(looked.tape.exchanges[number - 1] for number in numbers)})


def _text_in(hello: str, name: str) -> str:
    try:
        given = json.loads(hello)
        return str(given.get(name, ""))
    except (ValueError, AttributeError, RecursionError):
        return ""
