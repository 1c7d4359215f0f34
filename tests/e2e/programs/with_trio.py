"""Two tasks of trio that wait for random times, then ask with clock, chance and identity in the question."""

import random
import time
import uuid

import httpx
import trio

URL = "https://search.example.com/search"
heard: dict[tuple[str, int], object] = {}


async def ask(who: str, client: httpx.AsyncClient) -> None:
    for n in range(3):
        await trio.sleep(random.random() / 10)
        question = f"{who} {n} {random.random()} {time.time()} {uuid.uuid4()}"
        reply = await client.get(URL, params={"q": question}, headers={"x-id": str(uuid.uuid1())})
        heard[who, n] = (reply.status_code, time.perf_counter(), reply.json()["query"])


def in_a_thread() -> float:
    return random.random() + time.monotonic()


async def main() -> None:
    async with httpx.AsyncClient() as client, trio.open_nursery() as nursery:
        nursery.start_soon(ask, "x", client)
        nursery.start_soon(ask, "y", client)
    print(await trio.to_thread.run_sync(in_a_thread))


trio.run(main)
for key in sorted(heard):
    print(key, heard[key])
