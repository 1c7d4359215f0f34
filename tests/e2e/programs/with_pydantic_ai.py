"""Two agents of pydantic-ai at once, with a tool that tells the time, and an answer that is a model of pydantic's."""

# What is imported is in the agents' own environment (.venv-soak).
# pyright: reportMissingImports=false
import asyncio
import datetime
import random
import time
import uuid

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel


class Plan(BaseModel):
    title: str
    steps: int


agent = Agent(OpenAIChatModel("gpt-4o"), system_prompt=f"It is {datetime.datetime.now()}. Run {uuid.uuid4()}.")
planner = Agent(OpenAIChatModel("gpt-4o"), output_type=Plan)


@agent.tool_plain
def clock(place: str) -> str:
    """Tell the time."""
    return f"{place}: {time.time_ns()} {random.random()}"


async def one(name: str) -> str:
    await asyncio.sleep(random.random() / 10)
    result = await agent.run(f"{name}: what time is it? {uuid.uuid4()}")
    return f"{result.output} {[message.timestamp for message in result.all_messages()]}"


async def main() -> None:
    for said in await asyncio.gather(one("x"), one("y")):
        print(said)
    print((await planner.run(f"Plan {time.time()}")).output)


asyncio.run(main())
