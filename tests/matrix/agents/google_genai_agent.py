"""google-genai: functions that the SDK calls itself, streamed; then two streams side by side, which go by aiohttp."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import asyncio
import datetime
import time
import uuid

from google import genai
from google.genai import types

MODEL = "gemini-2.5-flash"


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain at {time.time_ns()}"


async def side_by_side(client: genai.Client) -> None:
    async def one(name: str) -> str:
        stream = await client.aio.models.generate_content_stream(model=MODEL, contents=f"{name} {uuid.uuid4()}")
        return "|".join([chunk.text or "" async for chunk in stream])

    for text in await asyncio.gather(*map(one, ("left", "right", "middle"))):
        print(text)
    await client.aio.aclose()


client = genai.Client()
asked = f"The weather on {datetime.datetime.now()}? {uuid.uuid4()}"
config = types.GenerateContentConfig(tools=[get_weather])
answer = client.models.generate_content(model=MODEL, contents=asked, config=config)
print(answer.text, answer.response_id)
for chunk in client.models.generate_content_stream(model=MODEL, contents=asked, config=config):
    print(chunk.text, end="|")
print()
asyncio.run(side_by_side(client))
