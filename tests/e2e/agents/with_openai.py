import asyncio

import openai
from openai.types.chat import ChatCompletionMessageParam

ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Count to five, please."}]

client = openai.OpenAI()
print(client.chat.completions.create(model="gpt-4o", messages=ASK).choices[0].message.content)
for chunk in client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True):
    print(chunk.choices[0].delta.content if chunk.choices else chunk.usage)
with client.responses.stream(model="gpt-4o", input="Count to five, please.") as stream:
    for event in stream:
        print(event.type)


async def parallel() -> None:
    async with openai.AsyncOpenAI() as client:
        questions = [f"What is {n} and {n}?" for n in range(6)]
        calls = (
            client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": question}])
            for question in questions
        )
        for completion in await asyncio.gather(*calls):
            print(completion.choices[0].message.content)


asyncio.run(parallel())
