"""The load generator, a process of its own: `python -m bench.load` with a Job as JSON on standard input.

It must not be what is measured. So every request is rendered, and encrypted, before the clock starts: TLS lets a
client seal all its records as soon as the handshake is done, for they depend on nothing that the server says later.
What is left for the timed part is to hand the kernel finished bytes and to read the answers; one selector loop does
that for all connections. Every server gets the same load.
"""

import json
import os
import selectors
import socket
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.client import ClientError, dial, proxy_port
from bench.conversation import HOST, Growth, answer_mark, conversation, request_head

_PATIENCE = 60.0
_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class Job:
    """What to send, and where: without `port` and `ca` to the proxy in the environment.

    Connection number c plays the conversations whose number is c modulo `connections`. `target` is the host and port
    that is asked of the proxy; None: the server is no proxy. `marked`: every request has an answer of its own.
    """

    connections: int
    conversations: int
    turns: int
    port: int | None = None
    ca: str | None = None
    target: str | None = f"{HOST}:443"
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """`seconds` from the first request to the last answer; `latencies` of each request, and `cpu`, in seconds."""

    requests: int
    request_bytes: int
    seconds: float
    cpu: float
    latencies: list[float]


@dataclass(slots=True)
class Client:
    """One connection with its sealed requests. `marks`: what each answer has to contain."""

    sock: socket.socket
    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    requests: deque[bytes] = field(default_factory=deque[bytes])
    marks: deque[bytes] = field(default_factory=deque[bytes])
    rest: memoryview = field(default_factory=lambda: memoryview(b""))
    answer: bytes = b""
    sent_at: float = 0.0
    latencies: list[float] = field(default_factory=list[float])

    def send_next(self) -> None:
        self.rest = memoryview(self.requests.popleft())
        self.sent_at = time.perf_counter()
        self.send_rest()

    def send_rest(self) -> None:
        try:
            while self.rest:
                self.rest = self.rest[self.sock.send(self.rest) :]
        except BlockingIOError:
            pass

    def receive(self) -> bool:
        """Read what is there; True when the answer is whole. Raises ClientError for a wrong one."""
        data = self.sock.recv(_READ)
        if not data:
            raise ClientError(f"the server hung up after {self.answer[:200]!r}")
        self.incoming.write(data)
        try:
            while more := self.tls.read(_READ):
                self.answer += more
        except ssl.SSLWantReadError:
            pass
        if not _is_whole(self.answer):
            return False
        self.latencies.append(time.perf_counter() - self.sent_at)
        mark = self.marks.popleft()
        if mark not in self.answer:
            raise ClientError(f"the answer to {mark!r} is {self.answer[:400]!r}")
        self.answer = b""
        return True


def _is_whole(answer: bytes) -> bool:
    head, mark, body = answer.partition(b"\r\n\r\n")
    if not mark:
        return False
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ClientError(f"the server answered {answer[:600]!r}")
    head = head.lower()
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


def prepare(job: Job, number: int) -> Client:
    """Connection `number` with its handshake done and its requests sealed."""
    port = proxy_port() if job.port is None else job.port
    sock = dial(port, job.target)
    context = ssl.create_default_context(cafile=job.ca or os.environ["SSL_CERT_FILE"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    host = HOST if job.target is None else job.target.rpartition(":")[0]
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    _shake_hands(sock, tls, incoming, outgoing)
    client = Client(sock, tls, incoming)
    for seed in range(number, job.conversations, job.connections):
        for at, turn in enumerate(conversation(seed, Growth(job.turns))):
            tls.write(request_head(len(turn.request)) + turn.request)
            client.requests.append(outgoing.read())
            client.marks.append(answer_mark(seed, at) if job.marked else b"")
    sock.setblocking(False)
    return client


def _shake_hands(sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(_READ))
        else:
            sock.sendall(outgoing.read())
            return


def run(job: Job) -> Outcome:
    """Send everything, each connection one request after the other. Raises ClientError."""
    clients = [prepare(job, number) for number in range(job.connections)]
    request_bytes = sum(len(request) for client in clients for request in client.requests)
    with selectors.DefaultSelector() as selector:
        start, cpu = time.perf_counter(), time.process_time()
        for client in clients:
            selector.register(client.sock, selectors.EVENT_READ, client)
            _send(selector, client, client.send_next)
        _drive(selector, len(clients))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    for client in clients:
        client.sock.close()
    latencies = [latency for client in clients for latency in client.latencies]
    return Outcome(len(latencies), request_bytes, seconds, cpu, latencies)


def _drive(selector: selectors.BaseSelector, running: int) -> None:
    while running:
        ready = selector.select(_PATIENCE)
        if not ready:
            raise ClientError(f"no answer for {_PATIENCE:.0f} s")
        for key, events in ready:
            client: Client = key.data
            if events & selectors.EVENT_WRITE:
                _send(selector, client, client.send_rest)
            if events & selectors.EVENT_READ and client.receive():
                if client.requests:
                    _send(selector, client, client.send_next)
                else:
                    selector.unregister(client.sock)
                    running -= 1


def _send(selector: selectors.BaseSelector, client: Client, send: Callable[[], None]) -> None:
    waited = bool(client.rest)
    send()
    if bool(client.rest) != waited:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.rest else 0)
        selector.modify(client.sock, events, client)


def main() -> None:
    """Read the job, run it, print the outcome."""
    job: dict[str, Any] = json.load(sys.stdin)
    print(json.dumps(asdict(run(Job(**job)))))


if __name__ == "__main__":
    main()
