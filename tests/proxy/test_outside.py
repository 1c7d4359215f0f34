"""The twin that stays outside of a network namespace: it connects, says why it could not, and ends with its owner."""

import os
import socket
import subprocess
import sys

import pytest
from traps import linux

pytestmark = linux

# In a process of its own: the twin is forked, and that is not for a process with threads.
PROGRAM = """
import asyncio, os, socket, sys
from tapeproxy.proxy import netns
from tapeproxy.proxy.outside import Outside, OutsideLoop
port, closed = map(int, sys.argv[1:])
outside = Outside.fork()
refusal = netns.enter()
if refusal:
    sys.exit(print("no namespace:", refusal))
print(outside.has("192.0.2.1", 1), outside.has("127.0.0.1", port), outside.has("localhost", closed), flush=True)
async def main():
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    print((await reader.read()).decode())
    writer.close()
    for ask in (outside.connect("127.0.0.1", closed), outside.resolve("nobody.invalid")):
        try:
            print(await ask)
        except OSError as error:
            print(type(error).__name__)
    print(await outside.resolve("127.0.0.1"))
    given_up = asyncio.ensure_future(outside.resolve("127.0.0.2"))
    await asyncio.sleep(0)
    given_up.cancel()
    print(await asyncio.gather(*(outside.resolve(f"127.0.0.{n}") for n in (3, 4))))
asyncio.run(main(), loop_factory=lambda: OutsideLoop(outside))
"""


def test_connections_outside_are_handed_in_and_what_went_wrong_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
        unused.close()
        words = [sys.executable, "-c", PROGRAM, str(server.getsockname()[1]), str(closed)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline().strip()
            if first.startswith("no namespace"):
                pytest.skip(first)
            client, _ = server.accept()
            with client:
                client.sendall(b"from outside")
            said = process.stdout.read().splitlines()
    assert first == "True True False"
    assert said == ["from outside", "ConnectionRefusedError", "gaierror", "127.0.0.1", "['127.0.0.3', '127.0.0.4']"]
