"""smolagents: an agent that calls tools, two at once in threads, streamed; it prints how long each step took."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false
import datetime
import time
import uuid

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """The weather.

    Args:
        city: Where.
    """
    return f"{city}: rain at {time.time_ns()}"


agent = ToolCallingAgent(tools=[get_weather], model=OpenAIServerModel("gpt-4o"), stream_outputs=True)
print(agent.run(f"The weather on {datetime.datetime.now()}? {uuid.uuid4()}"))
