"""litellm: a completion, a stream and two at once, to two providers; its callbacks run in threads of its own."""

# What is imported is in the agents' own environment (.venv-soak).
# pyright: reportMissingImports=false
import asyncio
import os
import random
import time
import uuid

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched at import

import litellm

litellm.telemetry = False


def ask(what: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{what} {uuid.uuid4()} {time.time()} {random.random()}"}]


async def several() -> None:
    models = ("gpt-4o", "anthropic/claude-sonnet-4-5")
    replies = await asyncio.gather(*(litellm.acompletion(model=model, messages=ask(model)) for model in models))
    for reply in replies:
        print(reply.id, reply.created, reply.choices[0].message.content)


reply = litellm.completion(model="gpt-4o", messages=ask("first"), user=str(uuid.uuid1()))
print(reply.id, reply.created, reply.choices[0].message.content)
for chunk in litellm.completion(model="gpt-4o", messages=ask("stream"), stream=True):
    print(chunk.id, repr(chunk.choices[0].delta.content))
asyncio.run(several())
