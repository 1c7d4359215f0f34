"""Time to the first event of a stream, straight and through a proxy in turns: `python -m bench.firstbyte`.

Reads a Job and prints an Outcome, both JSON. Connections are warm: each has served a few requests before any counts.
"""

import json
import os
import socket
import ssl
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from bench.client import ClientError, dial, proxy_port
from bench.conversation import PATH

_WARM = 5
_BODY = b'{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hello"}]}'


@dataclass(frozen=True, slots=True)
class Job:
    """`count` pairs of requests: to the origin's own port, and to `host`:`target` through the proxy.

    Without `proxy` and `ca`, the proxy is that of the environment. `origin_ca` vouches for the origin.
    """

    count: int
    origin: int
    origin_ca: str
    host: str
    target: int
    proxy: int | None = None
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds to the first byte of the body, pair by pair."""

    direct: list[float]
    through: list[float]


def run(job: Job) -> Outcome:
    """Measure. Raises ClientError."""
    straight = ssl.create_default_context(cafile=job.origin_ca)
    proxied = ssl.create_default_context(cafile=job.ca or os.environ["SSL_CERT_FILE"])
    port = proxy_port() if job.proxy is None else job.proxy
    with (
        straight.wrap_socket(dial(job.origin), server_hostname="127.0.0.1") as direct,
        proxied.wrap_socket(dial(port, f"{job.host}:{job.target}"), server_hostname=job.host) as through,
    ):
        pairs = [(_first_byte(direct), _first_byte(through)) for _ in range(job.count + _WARM)][_WARM:]
    return Outcome([a for a, _ in pairs], [b for _, b in pairs])


def _first_byte(sock: socket.socket) -> float:
    start = time.perf_counter()
    sock.sendall(
        b"POST %b HTTP/1.1\r\nHost: origin\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (PATH.encode(), len(_BODY), _BODY)
    )
    first = 0.0
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        more = sock.recv(65536)
        if not more:
            raise ClientError(f"the stream ended after {data!r}")
        data += more
        if not first and b"data:" in data:
            first = time.perf_counter() - start
    return first


def main() -> None:
    """Read the job, run it, print the outcome."""
    job: dict[str, Any] = json.load(sys.stdin)
    print(json.dumps(asdict(run(Job(**job)))))


if __name__ == "__main__":
    main()
