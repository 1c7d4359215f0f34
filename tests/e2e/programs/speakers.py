"""Speaks HTTP/2, gRPC and on WebSockets through the proxy, at once, and logs what it has received.

Arguments: the port of an HTTP/2 server without TLS, that of a server of WebSockets, the descriptor to log to. A line
is `PATH COUNT`: so many bytes of an answer, or so many messages on a WebSocket, have come so far. As in streamers.py,
nothing kills this program.
"""

import contextlib
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[2]))

from h2client import Client2, Heard
from speaking import PIECES, ROUNDS, STREAMS, text
from wstalks import WsClient

H2, WS, LOG = map(int, sys.argv[1:])
HOST = "127.0.0.1"


def tell(path: str, count: int) -> None:
    os.write(LOG, f"{path} {count}\n".encode())


def tunnel(port: int) -> socket.socket:
    proxy = urlsplit(os.environ["HTTP_PROXY"])
    sock = socket.create_connection((proxy.hostname, proxy.port))
    sock.sendall(f"CONNECT {HOST}:{port} HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        if not (more := sock.recv(1)):
            raise ConnectionError("the proxy is gone")
        answer += more
    return sock


def over(heard: Heard) -> bool:
    return heard.ended or heard.reset is not None


def streams() -> None:
    """Several streams at once on one connection, again and again."""
    with tunnel(H2) as sock:
        client = Client2(sock, scheme="http")
        for turn in range(ROUNDS):
            numbers = {client.ask(path=f"/h2/{turn}/{n}"): f"/h2/{turn}/{n}" for n in range(STREAMS)}
            told = dict.fromkeys(numbers, 0)
            while not client.gone and not all(over(client.streams[number]) for number in numbers):
                client.read()
                for number, path in numbers.items():
                    size = len(client.streams[number].body)
                    if size > told[number]:
                        told[number] = size
                        tell(path, size)


def calls() -> None:
    """Calls in which the next message is said when the answer to the one before it has come."""
    with tunnel(H2) as sock:
        client = Client2(sock, scheme="http")
        for turn in range(ROUNDS):
            path = f"/grpc/{turn}"
            number = client.begin("POST", path, ("content-type", "application/grpc"), ("te", "trailers"))
            heard = client.streams[number]
            wanted = 0
            for piece in range(PIECES):
                message = text(path, piece).encode()
                client.say(number, b"\0" + struct.pack(">I", len(message)) + message)
                wanted += 8 + len(message)
                while len(heard.body) < wanted and not client.gone and not over(heard):
                    client.read()
                if len(heard.body) < wanted:
                    return
                tell(path, len(heard.body))
            client.say(number, b"", end=True)
            client.hear(number)


def sockets() -> None:
    for turn in range(ROUNDS):
        path = f"/ws/{turn}"
        with tunnel(WS) as sock:
            client = WsClient(sock, HOST, path, deflate=turn == 0).accepted()
            for piece in range(PIECES):
                client.send(text(path, piece))
                for count in (1, 2):
                    client.texts(1)
                    tell(path, 2 * piece + count)
            client.close()


def quietly(speak) -> None:
    with contextlib.suppress(OSError, AssertionError):  # the proxy is gone
        speak()


threads = [threading.Thread(target=quietly, args=(speak,)) for speak in (streams, calls, sockets)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
