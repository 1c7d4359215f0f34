"""Polls for files that nobody's clock decides about, by argument: as many rounds as told, different in each run."""

import asyncio
import datetime
import sys
import time
from pathlib import Path

import httpx

URL = "https://search.example.com/search"
left = [int(word) for word in Path(sys.argv[1]).read_text().split()]  # rounds of each poll, in this run
kind = sys.argv[2]
values = []


def ready() -> bool:
    left[0] -= 1
    return left[0] < 0


def ask(client: httpx.Client, what: str) -> None:
    reply = client.get(URL, params={"q": f"{what} {datetime.datetime.now()} {time.time()}"})
    values.append((what, reply.status_code, time.time()))


def poll() -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ready():
        time.sleep(0.02)
    left.pop(0)


async def poll_in_a_task() -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ready():
        await asyncio.sleep(0.02)
    left.pop(0)


def threads() -> None:
    with httpx.Client() as client:
        for n in range(3):
            poll()
            ask(client, f"polled {n}")
            ask(client, f"straight {n}")
        poll()


async def tasks() -> None:
    async with httpx.AsyncClient() as client:
        for n in range(3):
            await poll_in_a_task()
            for what in (f"polled {n}", f"straight {n}"):
                reply = await client.get(URL, params={"q": f"{what} {datetime.datetime.now()} {time.time()}"})
                values.append((what, reply.status_code, time.time()))
        await poll_in_a_task()


threads() if kind == "threads" else asyncio.run(tasks())
reads = [at for _, _, at in values]
assert reads == sorted(reads), "time went back"
print(*values, sep="\n")
