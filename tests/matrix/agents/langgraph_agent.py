"""langgraph with langchain-openai: two branches at once, each a streamed tool loop, and checkpoints (ids by Rust)."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false, reportFunctionMemberAccess=false
import asyncio
import datetime
import operator
import time
import uuid
from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    said: Annotated[list[str], operator.add]


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain at {time.time_ns()}"


async def loop(name: str) -> str:
    model = ChatOpenAI(model="gpt-4o").bind_tools([get_weather])
    messages: list[AnyMessage] = [HumanMessage(f"{name}: the weather on {datetime.datetime.now()}? {uuid.uuid4()}")]
    while True:
        pieces = [piece async for piece in model.astream(messages)]
        said = pieces[0]
        for piece in pieces[1:]:
            said += piece
        if not said.tool_calls:
            return "|".join(piece.text for piece in pieces)
        results = await asyncio.gather(*(get_weather.ainvoke(call["args"]) for call in said.tool_calls))
        calls = zip(said.tool_calls, results, strict=True)
        messages += [said, *(ToolMessage(result, tool_call_id=call["id"]) for call, result in calls)]


async def left(_: State) -> State:
    return {"said": [await loop("left")]}


async def right(_: State) -> State:
    return {"said": [await loop("right")]}


async def main() -> None:
    builder = StateGraph(State)
    for node in (left, right):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
        builder.add_edge(node.__name__, END)
    graph = builder.compile(checkpointer=MemorySaver())
    thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
    done = await graph.ainvoke({"said": []}, thread)
    print(*done["said"], graph.get_state(thread).config, sep="\n")


asyncio.run(main())
