"""Talks on one WebSocket, asks for a value, and says it on another: `with_socket_and_value.py PORT`."""

import sys
import urllib.request

from websockets.sync.client import connect

HOST = f"127.0.0.1:{sys.argv[1]}"

with connect(f"ws://{HOST}/first") as first:
    first.send("hello")
    print(first.recv(), first.recv(), flush=True)
value = urllib.request.urlopen(f"http://{HOST}/value").read().decode()
with connect(f"ws://{HOST}/second") as second:
    second.send(value)
    print(second.recv(), second.recv(), flush=True)
