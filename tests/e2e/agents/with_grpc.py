"""Calls every kind of method of tests/grpcservice.py: with TLS at localhost:SECURE, without at localhost:PLAIN."""

import asyncio
import os
import queue
import sys
from collections.abc import Iterator

import grpc
import grpc.aio

SECURE, PLAIN = sys.argv[1:3]
SAYS = os.environ.get("SAYS", "message 2")
SERVICE = "/test.Service/"


def tell(*what: object) -> None:
    print(*what, flush=True)


def failed(error: grpc.RpcError) -> None:
    call = error
    assert isinstance(call, grpc.Call)
    tell(call.code(), call.details(), [*call.trailing_metadata()])


def calls(channel: grpc.Channel) -> None:
    unary = channel.unary_unary(SERVICE + "Unary")
    reply, call = unary.with_call(b"hello", metadata=(("mark", "m"), ("trace-bin", b"\x00\xff")), timeout=10)
    tell(reply, call.code(), [*call.initial_metadata()], [*call.trailing_metadata()])
    for method, request in (("Unary", b"fail"), ("Nowhere", b"")):
        try:
            channel.unary_unary(SERVICE + method)(request, timeout=10)
        except grpc.RpcError as error:
            failed(error)
    tell(list(channel.unary_stream(SERVICE + "Down")(b"3", timeout=10)))
    tell(channel.stream_unary(SERVICE + "Up")(iter([b"a", b"b" * 100_000, b""]), timeout=10))


def chat(channel: grpc.Channel) -> None:
    """Say the next thing when the answer to the one before it has come."""
    says: queue.Queue[bytes | None] = queue.Queue()

    def said() -> Iterator[bytes]:
        while (message := says.get()) is not None:
            yield message

    says.put(b"message 1")
    try:
        for number, reply in enumerate(channel.stream_stream(SERVICE + "Chat")(said(), timeout=10)):
            tell(reply)
            says.put((SAYS.encode(), b"message 3", None)[number])
    except grpc.RpcError as error:
        says.put(None)
        failed(error)


async def at_once() -> None:
    async with grpc.aio.insecure_channel(f"localhost:{PLAIN}") as channel:
        unary = channel.unary_unary(SERVICE + "Unary")
        tell(await asyncio.gather(*(unary(b"%d" % number) for number in range(5))))


with grpc.secure_channel(f"localhost:{SECURE}", grpc.ssl_channel_credentials()) as channel:
    calls(channel)
    chat(channel)
with grpc.insecure_channel(f"localhost:{PLAIN}") as channel:
    chat(channel)
    try:
        channel.unary_unary(SERVICE + "Slow")(b"x", timeout=0.1)
    except grpc.RpcError as error:
        failed(error)
asyncio.run(at_once())
