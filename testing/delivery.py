"""Sends a `Response` the way its `Delivery` says: paced, compressed, cut short. Knows HTTP, not what is said."""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tapeproxy.testing.chance import Chance
from tapeproxy.testing.realtime import PROTOCOL, Session
from tapeproxy.testing.script import Delivery
from tapeproxy.testing.wire import Exchange

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_COMPRESSED: Final = ("content-encoding", "gzip")


@dataclass(frozen=True, slots=True)
class Response:
    """What to send: a whole `body`, or the `events` of a stream; how it travels, and the chance that paces it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    how: Delivery
    chance: Chance
    body: bytes = b""
    events: tuple[bytes, ...] | None = None


async def deliver(exchange: Exchange, response: Response) -> None:
    """Send one response; raises ConnectionError when the client has left."""
    how = response.how
    await asyncio.sleep(how.delay_ms / 1000)
    if how.reset and how.cut_after is None:
        exchange.reset()
    elif response.events is None:
        await _send_body(exchange, response)
    else:
        await _send_events(exchange, response, response.events)


async def converse(exchange: Exchange, session: Session) -> None:
    """Hold one session until the client closes it; raises ConnectionError when it has left."""
    socket = await exchange.switch(PROTOCOL)
    for event in session.begin():
        await socket.send(event)
    async for message in socket:
        events = list(session.hear(message))
        how = session.delivery
        await asyncio.sleep(how.delay_ms / 1000)
        for event in events[: how.cut_after]:
            await asyncio.sleep(session.gap())
            await socket.send(event)
        if how.cut_after is not None or how.reset:
            _break_off(exchange, how)
            return


async def _send_body(exchange: Exchange, response: Response) -> None:
    headers, body = response.headers, response.body
    if response.how.gzip:
        headers, body = (*headers, _COMPRESSED), gzip.compress(body, mtime=0)
    if response.how.cut_after is None:
        await exchange.answer(response.status, headers, body)
        return
    await exchange.start(response.status, headers, length=len(body))
    await exchange.send(body[: len(body) // 2])
    _break_off(exchange, response.how)


async def _send_events(exchange: Exchange, response: Response, events: tuple[bytes, ...]) -> None:
    how, chance = response.how, response.chance
    encode = _gzip_stream() if how.gzip else None
    headers = (*response.headers, _COMPRESSED) if encode else response.headers
    await exchange.start(response.status, headers)
    for frame in chance.frames(events[: how.cut_after]):
        await asyncio.sleep(chance.gap(*how.gap_ms))
        await exchange.send(encode(frame, zlib.Z_SYNC_FLUSH) if encode else frame)
    if how.cut_after is not None:
        _break_off(exchange, how)
        return
    if encode:
        await exchange.send(encode(b"", zlib.Z_FINISH))
    await exchange.finish()


def _break_off(exchange: Exchange, how: Delivery) -> None:
    if how.reset:
        exchange.reset()
    else:
        exchange.cut()


def _gzip_stream() -> Callable[[bytes, int], bytes]:
    """An encoder whose every piece can be decoded as soon as it arrives (with Z_SYNC_FLUSH)."""
    squeeze = zlib.compressobj(wbits=_GZIP_WINDOW)
    return lambda data, flush: squeeze.compress(data) + squeeze.flush(flush)
