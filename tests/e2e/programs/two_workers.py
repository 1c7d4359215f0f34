"""A planner, two workers whose calls overlap, a synthesizer: threads, a pool, tasks, queues, or a loop beside."""

import asyncio
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx

URL = "https://api.openai.com/v1/chat/completions"


def body(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def ask(client: httpx.Client, text: str) -> str:
    return str(client.post(URL, json=body(text)).json()["choices"][0]["message"]["content"])


def work(client: httpx.Client, name: str) -> str:
    found = ask(client, f"{name}, first")
    return ask(client, f"{name}, after {found}")


def with_threads(client: httpx.Client, plan: str) -> list[str]:
    found: dict[str, str] = {}

    def run(name: str) -> None:
        found[name] = work(client, f"{name} on {plan}")

    threads = [threading.Thread(target=run, args=(name,), name=name) for name in ("alice", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found["alice"], found["bob"]]


def with_pool(client: httpx.Client, plan: str) -> list[str]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, [client] * 2, [f"alice on {plan}", f"bob on {plan}"]))


def with_queues(client: httpx.Client, plan: str) -> list[str]:
    boxes: dict[str, queue.Queue[str]] = {"alice": queue.Queue(), "bob": queue.Queue()}
    out: queue.Queue[tuple[str, str]] = queue.Queue()

    def run(name: str) -> None:
        job = boxes[name].get()
        out.put((name, work(client, f"{name} on {job}")))

    for name in boxes:
        threading.Thread(target=run, args=(name,), name=name).start()
    for name in boxes:
        boxes[name].put(plan)
    found = dict(out.get() for _ in boxes)
    return [found["alice"], found["bob"]]


def with_joined_queues(client: httpx.Client, plan: str) -> list[str]:
    """Daemons that never end; who waits asks their queues."""
    boxes: dict[str, queue.Queue[str]] = {"alice": queue.Queue(), "bob": queue.Queue()}
    found: dict[str, str] = {}

    def run(name: str) -> None:
        while True:
            found[name] = work(client, f"{name} on {boxes[name].get()}")
            boxes[name].task_done()

    for name in boxes:
        threading.Thread(target=run, args=(name,), name=name, daemon=True).start()
        boxes[name].put(plan)
    for box in boxes.values():
        box.join()
    return [found["alice"], found["bob"]]


def with_loop(plan: str) -> list[str]:
    """As the synchronous front of an asynchronous SDK does it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    found = asyncio.run_coroutine_threadsafe(with_tasks(plan), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return found


async def with_tasks(plan: str) -> list[str]:
    async with httpx.AsyncClient() as client:

        async def work_later(name: str) -> str:
            first = await client.post(URL, json=body(f"{name}, first"))
            found = first.json()["choices"][0]["message"]["content"]
            return (await client.post(URL, json=body(f"{name}, after {found}"))).text

        tasks = [asyncio.create_task(work_later(f"{name} on {plan}"), name=name) for name in ("alice", "bob")]
        return list(await asyncio.gather(*tasks))


def main(kind: str) -> None:
    with httpx.Client() as client:
        plan = ask(client, "plan")
        if kind == "tasks":
            parts = asyncio.run(with_tasks(plan))
        elif kind == "loop":
            parts = with_loop(plan)
        else:
            ways = {"threads": with_threads, "pool": with_pool, "queues": with_queues, "joined": with_joined_queues}
            parts = ways[kind](client, plan)
        print(ask(client, f"put together {parts}"))


main(sys.argv[1])
