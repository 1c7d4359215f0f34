"""How far from its due time each event of paced streams arrives: `python -m bench.paced`, behind a replay's proxy.

Reads a Job and prints the errors in milliseconds, both JSON. One selector loop reads all streams; each event's time is
taken as it comes out of the socket.
"""

import json
import os
import selectors
import ssl
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from bench.client import ClientError, dial, proxy_port
from bench.conversation import HOST, PATH
from bench.material import stream_request
from bench.stream import events

_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """Streams number `first` to `first` + `streams` - 1 at the same time, of `count` events each."""

    first: int
    streams: int
    count: int


@dataclass(slots=True)
class Stream:
    """One stream under way. `due` and `errors` in nanoseconds."""

    sock: ssl.SSLSocket
    due: list[int]
    start: int = 0
    last: bytes = b""
    errors: list[int] = field(default_factory=list[int])

    def read(self) -> bool:
        """Take what is there; True when that was the last event. Raises ClientError."""
        try:
            while True:
                data = self.sock.recv(65536)
                now = time.perf_counter_ns()
                if not data:
                    raise ClientError(f"a stream ended after {len(self.errors)} events")
                seen = (self.last + data).count(b"\n\n")
                self.last = data[-1:] if not data.endswith(b"\n\n") else b""
                for _ in range(seen):
                    self.errors.append(now - self.start - self.due[len(self.errors)])
        except ssl.SSLWantReadError:
            return len(self.errors) == len(self.due)


def run(job: Job) -> list[float]:
    """Play the streams; the errors of all events in milliseconds, late ones positive."""
    streams = [_open(seed, job.count) for seed in range(job.first, job.first + job.streams)]
    with selectors.DefaultSelector() as selector:
        for seed, stream in enumerate(streams, job.first):
            body = stream_request(seed)
            stream.sock.sendall(
                f"POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            stream.start = time.perf_counter_ns()
            stream.sock.setblocking(False)
            selector.register(stream.sock, selectors.EVENT_READ, stream)
        while selector.get_map():
            ready = selector.select(_PATIENCE)
            if not ready:
                raise ClientError("a stream stands still")
            for key, _ in ready:
                if key.data.read():
                    selector.unregister(key.fileobj)
    for stream in streams:
        stream.sock.close()
    return [error / 1e6 for stream in streams for error in stream.errors]


def _open(seed: int, count: int) -> Stream:
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    sock = context.wrap_socket(dial(proxy_port(), f"{HOST}:443"), server_hostname=HOST)
    return Stream(sock, [event.due for event in events(seed, count)])


def main() -> None:
    """Read the job, run it, print the errors."""
    job: dict[str, Any] = json.load(sys.stdin)
    print(json.dumps(run(Job(**job))))


if __name__ == "__main__":
    main()
