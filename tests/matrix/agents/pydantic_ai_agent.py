"""pydantic-ai: two runs at once, each streamed with a tool that is called twice, then an answer as a model."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false
import asyncio
import datetime
import time
import uuid
from collections.abc import AsyncIterable

from pydantic import BaseModel
from pydantic_ai import Agent, AgentStreamEvent
from pydantic_ai.models.openai import OpenAIChatModel


class Plan(BaseModel):
    title: str
    steps: int


agent = Agent(OpenAIChatModel("gpt-4o"), system_prompt=f"It is {datetime.datetime.now()}. Run {uuid.uuid4()}.")
planner = Agent(OpenAIChatModel("gpt-4o"), output_type=Plan)


@agent.tool_plain
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain at {time.time_ns()}"


async def one(name: str) -> str:
    kinds: list[str] = []

    async def hear(_: object, events: AsyncIterable[AgentStreamEvent]) -> None:
        kinds.extend([event.event_kind async for event in events])

    result = await agent.run(f"{name}: the weather? {uuid.uuid4()}", event_stream_handler=hear)
    return f"{len(kinds)} {result.output} {[message.timestamp for message in result.all_messages()]}"


async def main() -> None:
    for said in await asyncio.gather(one("left"), one("right")):
        print(said)
    print((await planner.run(f"Plan {time.time()}")).output)


asyncio.run(main())
