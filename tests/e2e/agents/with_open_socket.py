"""Counts what comes on a WebSocket for as long as it is open: `with_open_socket.py URL`."""

import sys

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

with connect(sys.argv[1], close_timeout=1) as session:
    try:
        while True:
            session.send("more")
            print(session.recv(), session.recv(), flush=True)
    except ConnectionClosed:
        sys.exit(9)
