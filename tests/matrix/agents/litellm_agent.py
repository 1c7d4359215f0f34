"""litellm as it comes (importing it fetches a table of prices): streamed tool loops with two providers at once."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false
import asyncio
import datetime
import json
import time
import uuid
from typing import Any

import litellm

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": CITY}}


def get_weather(arguments: str) -> str:
    return f"{json.loads(arguments)['city']}: rain at {time.time_ns()}"


async def loop(model: str) -> str:
    messages: list[Any] = [
        {"role": "user", "content": f"{model}: the weather on {datetime.datetime.now()}? {uuid.uuid4()}"}
    ]
    while True:
        stream = await litellm.acompletion(model=model, messages=messages, tools=[TOOL], stream=True)
        chunks = [chunk async for chunk in stream]
        whole: Any = litellm.stream_chunk_builder(chunks, messages=messages)
        said = whole.choices[0].message
        if not said.tool_calls:
            return "|".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": get_weather(call.function.arguments)})


async def main() -> None:
    for text in await asyncio.gather(*map(loop, ("gpt-4o", "anthropic/claude-sonnet-4-5"))):
        print(text)


asyncio.run(main())
