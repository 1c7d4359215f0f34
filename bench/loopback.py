"""A server that parses nothing: `python -m bench.loopback REQUEST_BYTES`. Says its port; for one connection.

It takes that many bytes and answers with 1 KB, again and again: what the kernel alone costs.
"""

import socket
import sys

ANSWER = bytes(1000)
_ROOM = 1 << 18


def main(size: int) -> None:
    """Serve one client until it leaves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(f"listening at 127.0.0.1:{server.getsockname()[1]}", flush=True)
        sock, _ = server.accept()
    room = bytearray(_ROOM)
    left = size
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while taken := sock.recv_into(room, min(left, _ROOM)):
            left -= taken
            if not left:
                sock.sendall(ANSWER)
                left = size


if __name__ == "__main__":
    main(int(sys.argv[1]))
