"""A corporate proxy for tests: CONNECT, and a name and password that it is told."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from origin import PATIENCE
from recording import read_until


class Corporate:
    """A CONNECT proxy that leads every tunnel to one port, whatever was asked for, and answers plain requests itself.

    `heads` are the requests it saw.
    """

    def __init__(self, to: int) -> None:
        self.heads: list[str] = []
        self._to = to
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://us%40er:pa:ss@127.0.0.1:{self._server.getsockname()[1]}"
        self._threads: list[threading.Thread] = []

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._handle, args=(client,)))
            self._threads[-1].start()

    def _handle(self, client: socket.socket) -> None:
        with client:
            head = read_until(client, b"\r\n\r\n").decode()
            if not head:  # somebody looked whether we are here
                return
            self.heads.append(head)
            if not head.startswith("CONNECT"):
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nproxy")
                return
            with socket.create_connection(("127.0.0.1", self._to), PATIENCE) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pump, args=(server, client))
                back.start()
                _pump(client, server)
                back.join()

    def stop(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(PATIENCE)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@contextmanager
def corporate(to: int) -> Iterator[Corporate]:
    proxy = Corporate(to)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join()
