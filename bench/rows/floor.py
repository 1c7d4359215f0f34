"""The floor below every server: a request's bytes through the kernel and an answer back, and nothing else."""

import socket
import statistics
import time
from collections.abc import Iterator

from bench.client import ClientError, dial
from bench.contest import OURS, hold
from bench.figures import Bench, Line, Skipped
from bench.loopback import ANSWER
from bench.processes import FailedError, listening, python
from bench.servers import LISTENING

_REQUEST = 110_000


def floor(bench: Bench) -> Iterator[Line | Skipped]:
    """One connection over loopback: the median of many requests of 110 KB, without TLS and without HTTP."""
    count = 5 if bench.quick else 1000
    contest = hold(bench, "µs", {OURS: lambda: _median_us(count)}, 7)
    yield contest.alone("loopback alone, 1 connection: 110 KB there and 1 KB back")


def _median_us(count: int) -> float:
    request = bytes(_REQUEST)
    with listening([*python("loopback"), str(_REQUEST)], LISTENING) as port, dial(port) as sock:
        try:
            return statistics.median(_exchange(sock, request) for _ in range(count)) * 1e6
        except (OSError, ClientError) as error:
            raise FailedError(str(error)) from None


def _exchange(sock: socket.socket, request: bytes) -> float:
    start = time.perf_counter()
    sock.sendall(request)
    left = len(ANSWER)
    while left:
        data = sock.recv(left)
        if not data:
            raise ClientError("the server hung up")
        left -= len(data)
    return time.perf_counter() - start
