import asyncio

import anthropic
from anthropic.types import MessageParam

ASK: list[MessageParam] = [{"role": "user", "content": "Count to five, please."}]

client = anthropic.Anthropic()
print(client.messages.create(model="claude-sonnet-4-5", max_tokens=100, messages=ASK).content[0])
with client.messages.stream(model="claude-sonnet-4-5", max_tokens=100, messages=ASK) as stream:
    for text in stream.text_stream:
        print(text)


async def main() -> None:
    async with (
        anthropic.AsyncAnthropic() as client,
        client.messages.stream(model="claude-sonnet-4-5", max_tokens=100, messages=ASK) as stream,
    ):
        async for event in stream:
            print(event.type)


asyncio.run(main())
