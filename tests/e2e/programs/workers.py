"""Three workers take jobs from a queue: who takes which depends on whose answer came first. Prints the jobs as done."""

import asyncio
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import httpx

URL = "https://api.openai.com/v1/chat/completions"
KIND = sys.argv[1]
JOBS = 9
done: list[int] = []


def body(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


async def work(client: httpx.AsyncClient, jobs: asyncio.Queue[int], name: int) -> None:
    while KIND == "get" or not jobs.empty():
        job = await jobs.get() if KIND == "get" else jobs.get_nowait()
        await client.post(URL, json=body(f"job {job} for {name}"))
        done.append(job)
        jobs.task_done()


async def within(client: httpx.AsyncClient, limit: asyncio.Semaphore, job: int) -> None:
    async with limit:
        await client.post(URL, json=body(f"job {job} after {done}"))
        done.append(job)


async def main() -> None:
    async with httpx.AsyncClient() as client:
        if KIND == "semaphore":
            limit = asyncio.Semaphore(3)
            await asyncio.gather(*(within(client, limit, job) for job in range(JOBS)))
            return
        jobs: asyncio.Queue[int] = asyncio.Queue()
        for job in range(JOBS):
            jobs.put_nowait(job)
        workers = [asyncio.create_task(work(client, jobs, name)) for name in range(3)]
        if KIND == "get":
            await jobs.join()
            for worker in workers:
                worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def work_in_thread(client: httpx.Client, jobs: queue.Queue[int], name: int) -> None:
    while True:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            return
        client.post(URL, json=body(f"job {job} for {name}"))
        done.append(job)


def ask(client: httpx.Client, job: int) -> int:
    client.post(URL, json=body(f"job {job}"))
    return job


def in_threads() -> None:
    jobs: queue.Queue[int] = queue.Queue()
    for job in range(JOBS):
        jobs.put(job)
    with httpx.Client() as client:
        if KIND == "threads":
            threads = [threading.Thread(target=work_in_thread, args=(client, jobs, name)) for name in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elif KIND == "pool":
            with ThreadPoolExecutor(3) as pool:
                list(pool.map(work_in_thread, [client] * 3, [jobs] * 3, range(3)))
        else:
            with ThreadPoolExecutor(4) as pool:
                for future in as_completed({pool.submit(ask, client, job): job for job in range(JOBS)}):
                    done.append(future.result())
                    ask(client, -len(done))


if KIND in ("threads", "pool", "futures"):
    in_threads()
else:
    asyncio.run(main())
print(*done)
