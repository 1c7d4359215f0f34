"""grpcio: every kind of call, a conversation both ways, a call that fails; then three side by side with its asyncio."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false
import asyncio
import datetime
import time
import uuid
from typing import Any

import grpc
import grpc.aio

TARGET = "grpc.example.com:443"
SERVICE = "/test.Service/"


def said(text: str) -> bytes:
    return f"{text} {datetime.datetime.now()} {uuid.uuid4()}".encode()


def calls(channel: Any) -> None:
    print(channel.unary_unary(SERVICE + "Unary")(said("The weather?"), timeout=60))
    print(b"|".join(channel.unary_stream(SERVICE + "Down")(b"5", timeout=60)))
    print(channel.stream_unary(SERVICE + "Up")(iter([said("one"), said("two"), b"x" * 100_000]), timeout=60))
    try:
        channel.unary_unary(SERVICE + "Unary")(b"fail", timeout=60)
    except grpc.RpcError as error:
        failed: Any = error
        print(failed.code(), failed.details())


async def talk(channel: Any) -> None:
    """Each message tells of the answer before it."""
    call = channel.stream_stream(SERVICE + "Chat")()
    heard = b"nothing"
    for _ in range(3):
        await call.write(b"heard %b at %d" % (heard[:20], time.time_ns()))
        heard = await call.read()
        print(heard)
    await call.done_writing()


async def side_by_side() -> None:
    async with grpc.aio.secure_channel(TARGET, grpc.ssl_channel_credentials()) as channel:
        await talk(channel)
        unary = channel.unary_unary(SERVICE + "Unary")
        for reply in await asyncio.gather(*(unary(said(name)) for name in ("left", "right", "middle"))):
            print(reply)


with grpc.secure_channel(TARGET, grpc.ssl_channel_credentials()) as channel:
    calls(channel)
asyncio.run(side_by_side())
