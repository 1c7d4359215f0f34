"""anthropic: a streamed tool loop with two calls at once, then two messages side by side."""

import asyncio
import datetime
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {"name": "get_weather", "description": "The weather.", "input_schema": CITY}
MODEL = "claude-sonnet-4-5"
HTTP2 = "http2" in sys.argv
VERSIONS: set[str] = set()


def note(response: Any) -> None:
    VERSIONS.add(response.http_version)


async def note_later(response: Any) -> None:
    note(response)


SYNC = anthropic.DefaultHttpxClient(http2=True, event_hooks={"response": [note]}) if HTTP2 else None
ASYNC = anthropic.DefaultAsyncHttpxClient(http2=True, event_hooks={"response": [note_later]}) if HTTP2 else None


def get_weather(call: Any) -> dict[str, str]:
    text = f"{call.input['city']}: rain at {time.time_ns()}"
    return {"type": "tool_result", "tool_use_id": call.id, "content": text}


def loop(client: anthropic.Anthropic) -> None:
    messages: list[Any] = [{"role": "user", "content": f"The weather on {datetime.datetime.now()}? {uuid.uuid4()}"}]
    while True:
        with client.messages.stream(model=MODEL, max_tokens=500, messages=messages, tools=[TOOL]) as stream:
            for text in stream.text_stream:
                print(text, end="|")
            said = stream.get_final_message()
        print()
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return
        with ThreadPoolExecutor() as pool:
            results = [*pool.map(get_weather, calls)]
        messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]


async def side_by_side() -> None:
    async with anthropic.AsyncAnthropic(http_client=ASYNC) as client:

        async def one(name: str) -> str:
            asked: Any = [{"role": "user", "content": f"{name} {uuid.uuid4()}"}]
            async with client.messages.stream(model=MODEL, max_tokens=500, messages=asked) as stream:
                return await stream.get_final_text()

        for text in await asyncio.gather(*map(one, ("left", "right", "middle"))):
            print(text)


loop(anthropic.Anthropic(http_client=SYNC))
asyncio.run(side_by_side())
print(*VERSIONS)
