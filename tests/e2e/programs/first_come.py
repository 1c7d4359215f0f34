"""Asks four things at once and goes on with each as it comes: what is asked next depends on who was first."""

import asyncio
import sys

import httpx

URL = "https://api.openai.com/v1/chat/completions"
KIND = sys.argv[1]


async def ask(client: httpx.AsyncClient, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    if KIND.endswith("in_threads"):
        reply = await asyncio.to_thread(httpx.post, URL, json=body)
    else:
        reply = await client.post(URL, json=body)
    return f"{text}:{reply.json()['choices'][0]['message']['content']}"


async def main() -> None:
    async with httpx.AsyncClient() as client:
        heard = []
        tasks = [asyncio.create_task(ask(client, name)) for name in "ABCD"]
        if KIND == "gather":
            heard = await asyncio.gather(*tasks)
        elif KIND.startswith("as_completed"):
            for one in asyncio.as_completed(tasks):
                heard.append(await one)
        else:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                heard += sorted(task.result() for task in done)
                await ask(client, f"so far {heard}")
        print(await ask(client, f"in this order {heard}"))


asyncio.run(main())
