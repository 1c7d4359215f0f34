"""Two threads and two tasks that put clock, chance and identity into everything they ask."""

import asyncio
import datetime
import os
import random
import secrets
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx

URL = "https://search.example.com/search"
heard: dict[tuple[str, int], object] = {}


def question(who: str, n: int) -> str:
    return f"{who} {n} {random.random()} {time.time()} {uuid.uuid4()} {secrets.token_hex(4)}"


def thread(who: str) -> None:
    with httpx.Client() as client:
        for n in range(2):
            reply = client.get(URL, params={"q": question(who, n)}, headers={"x-id": str(uuid.uuid1())})
            heard[who, n] = (reply.status_code, time.time(), reply.json()["query"])
            time.sleep(random.random() / 10)


async def task(who: str, client: httpx.AsyncClient) -> None:
    for n in range(2):
        await asyncio.sleep(random.random() / 10)
        reply = await client.get(URL, params={"q": question(who, n)})
        heard[who, n] = (reply.status_code, time.perf_counter(), reply.json()["query"])


async def tasks() -> None:
    async with httpx.AsyncClient() as client:
        await asyncio.gather(task("x", client), task("y", client))


print(datetime.datetime.now(), hash("text"), {"a", "b", "c"}, os.environ.get("TMPDIR"), tempfile.mktemp())
threads = [threading.Thread(target=thread, args=(who,)) for who in "AB"]
for one in threads:
    one.start()
for one in threads:
    one.join()
asyncio.run(tasks())
with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(lambda n: (n, random.random(), time.time_ns()), range(5))))
for key in sorted(heard):
    print(key, heard[key])
