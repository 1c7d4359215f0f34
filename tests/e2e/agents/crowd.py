"""One of many agents at the same time: `crowd.py NAME CLIENT` asks with its own name in everything, once it is told to.

It begins when a line comes on its standard input, so that all of them ask together.
"""

import asyncio
import json
import sys

NAME, CLIENT = sys.argv[1:]
ROUNDS = range(4)
CHAT = "https://api.openai.com/v1/chat/completions"


def search(n: int) -> str:
    # Every other request goes in the clear: no tunnel, so each one carries the proxy's credentials.
    return f"http{'s' if n % 2 else ''}://search.example.com/search?q={NAME}.{n}"


def chat(n: int) -> str:
    return json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": f"{NAME}. asks {n}"}]})


def with_requests() -> None:
    import requests

    sys.stdin.readline()
    with requests.Session() as session:
        for n in ROUNDS:
            print(session.get(search(n)).text)
            print(session.post(CHAT, data=chat(n), headers={"content-type": "application/json"}).text)


async def with_aiohttp() -> None:
    import aiohttp

    sys.stdin.readline()
    async with aiohttp.ClientSession(trust_env=True) as session:
        for n in ROUNDS:
            async with session.get(search(n)) as reply:
                print(await reply.text())
            async with session.post(CHAT, data=chat(n), headers={"content-type": "application/json"}) as reply:
                print(await reply.text())


def with_openai() -> None:
    import openai
    from openai.types.chat import ChatCompletionMessageParam

    client = openai.OpenAI(max_retries=0)
    sys.stdin.readline()
    for n in ROUNDS:
        messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": f"{NAME}. asks {n}"}]
        for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
            print(chunk.choices[0].delta.content if chunk.choices else chunk.usage)


match CLIENT:
    case "requests":
        with_requests()
    case "aiohttp":
        asyncio.run(with_aiohttp())
    case "openai":
        with_openai()
