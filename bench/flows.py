"""The same tape for mitmdump: `python -m bench.flows FILE CONVERSATIONS TURNS` writes a flows file of its own kind.

A process of its own, because mitmproxy may be absent.
"""

import sys
from pathlib import Path

from mitmproxy import connection, http, io

from bench.conversation import HOST, PATH, Growth, conversation


def write(path: Path, conversations: int, turns: int) -> None:
    """Write the flows of conversations 0 to `conversations` - 1."""
    with path.open("wb") as file:
        writer = io.FlowWriter(file)
        for seed in range(conversations):
            for turn in conversation(seed, Growth(turns)):
                writer.add(_flow(turn.request, turn.answer))


def _flow(request: bytes, answer: bytes) -> http.HTTPFlow:
    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2), timestamp_start=1.0)
    flow = http.HTTPFlow(client, connection.Server(address=(HOST, 443)))
    headers = ((b"content-type", b"application/json"),)
    flow.request = http.Request.make("POST", f"https://{HOST}{PATH}", request, headers)
    flow.response = http.Response.make(200, answer, headers)
    return flow


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
