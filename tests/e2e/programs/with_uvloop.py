"""Two tasks on uvloop, with executor items, timeouts and a timer of the loop."""

import asyncio
import datetime
import random
import time
import uuid

import httpx
import uvloop

URL = "https://search.example.com/search"
heard: dict[tuple[str, int], object] = {}


def draw(n: int) -> tuple[int, float, int]:
    return n, random.random(), time.time_ns()


async def ask(who: str, client: httpx.AsyncClient) -> None:
    for n in range(3):
        await asyncio.sleep(random.random() / 10)
        question = f"{who} {n} {random.random()} {datetime.datetime.now()} {uuid.uuid4()}"
        async with asyncio.timeout(30):
            reply = await client.get(URL, params={"q": question})
        drawn = await asyncio.get_running_loop().run_in_executor(None, draw, n)
        heard[who, n] = (reply.status_code, time.perf_counter(), reply.json()["query"], drawn)


async def main() -> None:
    async with httpx.AsyncClient() as client:
        await asyncio.gather(ask("x", client), ask("y", client))
    fired = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.05, lambda: fired.set_result(uuid.uuid4()))
    print(await fired)


uvloop.run(main())
for key in sorted(heard):
    print(key, heard[key])
