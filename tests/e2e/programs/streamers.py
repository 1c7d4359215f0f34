"""Eight agents in threads that ask for streams through the proxy, and log each chunk once they have all of it.

Arguments: the origin's URL, the descriptor to log to. A line is `AGENT REQUEST CHUNK`. Written at once to a pipe, it
outlives whatever becomes of the proxy; nothing kills this program.
"""

import os
import socket
import sys
import threading
from urllib.parse import urlsplit

AGENTS = 8
REQUESTS = 6


def main() -> None:
    url, log = sys.argv[1], int(sys.argv[2])
    proxy = urlsplit(os.environ["HTTP_PROXY"])
    threads = [threading.Thread(target=ask, args=(proxy, url, agent, log)) for agent in range(AGENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ask(proxy, url, agent, log):
    try:
        with socket.create_connection((proxy.hostname, proxy.port)) as sock, sock.makefile("rb") as answer:
            for request in range(REQUESTS):
                head = f"GET {url}/{agent}/{request} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n"
                sock.sendall(head.encode())
                for number in stream(answer):
                    os.write(log, f"{agent} {request} {number}\n".encode())
    except (OSError, EOFError):
        pass


def stream(answer):
    """Number the chunks of one response as they are whole."""
    while (line := answer.readline()) != b"\r\n":
        if not line.endswith(b"\n"):
            raise EOFError
    number = 0
    while True:
        line = answer.readline()
        size = int(line, 16) if line.endswith(b"\n") else None
        if size is None or len(answer.read(size + 2)) != size + 2:
            raise EOFError
        if size == 0:
            return
        yield number
        number += 1


main()
