"""openai-agents as it comes (it uploads traces): two runs at once, streamed, each with a tool that is called twice."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import asyncio
import datetime
import time
import uuid

from agents import Agent, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain at {time.time_ns()}"


agent = Agent(name="Weather", instructions=f"It is {datetime.datetime.now()}.", tools=[get_weather], model="gpt-5")


async def one(name: str) -> str:
    result = Runner.run_streamed(agent, f"{name}: the weather? {uuid.uuid4()}")
    kinds = [event.type async for event in result.stream_events()]
    return f"{len(kinds)} {result.final_output}"


async def main() -> None:
    for said in await asyncio.gather(one("left"), one("right")):
        print(said)


asyncio.run(main())
