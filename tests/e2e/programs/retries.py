"""An async agent whose provider is overloaded three times: the SDK backs off for seconds, with jitter."""

import asyncio
import time
import uuid

import openai
from openai.types.chat import ChatCompletionMessageParam


async def main() -> None:
    began = time.monotonic()
    async with openai.AsyncOpenAI(max_retries=4) as client:
        text = f"Hello from {uuid.uuid4()} at {time.time()}"
        ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": text}]
        completion = await client.chat.completions.create(model="gpt-4o", messages=ask)
    print(completion.choices[0].message.content)
    print(f"{time.monotonic() - began:.6f}")


asyncio.run(main())
