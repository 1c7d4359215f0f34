"""A request in two writes is not held up by the kernel."""

import socket
import time
from collections.abc import Callable

import pytest
from origin import Call, Origin
from recording import Recording, read_until

type Make = Callable[..., Recording]

DELAYED_ACK = 0.04
"""Seconds that Linux keeps an ACK back, and Nagle's algorithm the body that waits for it."""


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="TCP_QUICKACK is Linux's")
def test_a_body_in_a_second_write_comes_at_once(record: Make) -> None:
    async def ok(call: Call) -> None:
        await call.reply(b"ok")

    times: list[float] = []
    with Origin(ok) as origin, record() as recording, recording.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        for _ in range(20):
            begun = time.perf_counter()
            sock.sendall(f"POST {origin.url}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n".encode())
            sock.sendall(b"body")
            read_until(sock, b"ok")
            times.append(time.perf_counter() - begun)
        assert [seen.body for seen in origin.requests] == [b"body"] * 20
    # A busy machine can make any one slow, the fault makes every one after the first few slow.
    assert min(times[5:]) < DELAYED_ACK
    assert recording.wire.failures.count == 0
