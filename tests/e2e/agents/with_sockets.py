"""An echo over a WebSocket, by each client: `with_sockets.py CHANGED`, where CHANGED is another last word."""

import asyncio
import os
import ssl
import sys
import uuid

import aiohttp
import websocket
from websockets.asyncio.client import connect as connect_in_loop
from websockets.sync.client import connect

URL = "wss://echo.example.com/"
LAST = sys.argv[1] if len(sys.argv) > 1 else "last"


def say(heard: str) -> None:
    print(heard, flush=True)


with connect(URL + "threaded") as threaded:
    for word in ("one", str(uuid.uuid4())):
        threaded.send(word)
        say(str(threaded.recv()))
        say(str(threaded.recv()))

trust = {"ca_certs": os.environ["SSL_CERT_FILE"]}
plain = websocket.create_connection(URL + "plain", sslopt=trust)
for word in ("two", "three"):
    plain.send(word)
    say(str(plain.recv()))
    say(str(plain.recv()))
plain.close()


async def both(name: str) -> list[str]:
    """Send and receive at once."""
    async with connect_in_loop(URL + "loop") as session:

        async def send() -> None:
            for n in range(20):
                await session.send(f"{name} {n}")

        sending = asyncio.create_task(send())
        heard = [str(await session.recv()) for _ in range(40)]
        await sending
        return heard


async def main() -> None:
    # Two equal requests at once, told apart by who makes them.
    for heard in await asyncio.gather(both("left"), both("right")):
        say(" ".join(heard))
    context = ssl.create_default_context()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.ws_connect(URL + "aiohttp", protocols=("chat",)) as socket,
    ):
        await socket.send_json({"a": 1, "word": LAST})
        say(await socket.receive_str())
        say(await socket.receive_str())


asyncio.run(main())
