"""openai: a streamed tool loop with two calls at once, then the responses API, streamed and side by side."""

import asyncio
import datetime
import json
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

HTTP2 = "http2" in sys.argv
VERSIONS: set[str] = set()


def note(response: Any) -> None:
    VERSIONS.add(response.http_version)


async def note_later(response: Any) -> None:
    note(response)


SYNC = openai.DefaultHttpxClient(http2=True, event_hooks={"response": [note]}) if HTTP2 else None
ASYNC = openai.DefaultAsyncHttpxClient(http2=True, event_hooks={"response": [note_later]}) if HTTP2 else None
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": CITY}}


def get_weather(arguments: str) -> str:
    return f"{json.loads(arguments)['city']}: rain at {time.time_ns()}"


def loop(client: openai.OpenAI) -> None:
    messages: list[Any] = [
        {"role": "system", "content": f"Run {uuid.uuid4()}."},
        {"role": "user", "content": f"The weather on {datetime.datetime.now()}?"},
    ]
    while True:
        with client.chat.completions.stream(model="gpt-5", messages=messages, tools=[TOOL]) as stream:
            for event in stream:
                if event.type == "content.delta":
                    print(event.delta, end="|")
            said = stream.get_final_completion().choices[0].message
        print()
        if not said.tool_calls:
            return
        messages.append(said.to_dict())
        with ThreadPoolExecutor() as pool:
            results = pool.map(lambda call: get_weather(call.function.arguments), said.tool_calls)
        for call, result in zip(said.tool_calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def side_by_side() -> None:
    async with openai.AsyncOpenAI(http_client=ASYNC) as client:

        async def one(name: str) -> str:
            async with client.responses.stream(model="gpt-5", input=f"{name} {uuid.uuid4()}") as stream:
                return (await stream.get_final_response()).output_text

        for text in await asyncio.gather(*map(one, ("left", "right", "middle"))):
            print(text)


loop(openai.OpenAI(http_client=SYNC))
asyncio.run(side_by_side())
print(*VERSIONS)
