"""Threads that race for locks, queues, conditions and pools; what comes first is different every time it runs."""

import queue
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import httpx

URL = "https://search.example.com/search"
THREADS, TURNS = 4, 60

sys.setswitchinterval(1e-6)
lock = threading.Lock()
shared = random.Random(7)
order: list[object] = []
together = threading.Barrier(THREADS)


def all_at_once(work: object) -> None:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def append(n: int) -> None:
    together.wait()
    for _ in range(TURNS):
        with lock:
            order.append((n, shared.random()))


def produce(n: int) -> None:
    together.wait()
    for k in range(TURNS):
        tasks.put((n, k))


def consume(n: int) -> None:
    while (task := tasks.get()) is not None:
        with lock:
            order.append((n, task))


def wait(n: int) -> None:
    with ready:
        waiting.append(n)
        ready.wait()
        woken.append(n)
        order.append(("woken", n))


def ask(n: int) -> str:
    with lock:
        query = f"{n} {shared.random()}"
    with httpx.Client() as client:
        return str(client.get(URL, params={"q": query}).json()["query"])


all_at_once(append)

tasks: queue.Queue[tuple[int, int] | None] = queue.Queue(3)
consumers = [threading.Thread(target=consume, args=(n,)) for n in range(3)]
for consumer in consumers:
    consumer.start()
all_at_once(produce)
for _ in consumers:
    tasks.put(None)
for consumer in consumers:
    consumer.join()

ready = threading.Condition()
waiting: list[int] = []
woken: list[int] = []
waiters = [threading.Thread(target=wait, args=(n,)) for n in range(THREADS)]
for waiter in waiters:
    waiter.start()
while True:  # asking whether threads are alive would be a race of its own, without a lock
    with ready:
        if len(woken) == THREADS:
            break
        ready.notify()
order.append(waiting)

with ThreadPoolExecutor(THREADS) as pool:
    futures = [pool.submit(ask, n) for n in range(8)]
    order.extend(future.result() for future in as_completed(futures))

for line in order:
    print(line)
