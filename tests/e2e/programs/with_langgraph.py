"""A graph of langgraph with two branches at once, each with a model, a tool and a checkpoint."""

# What is imported is in the agents' own environment (.venv-soak).
# pyright: reportMissingImports=false
import asyncio
import operator
import random
import time
import uuid
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    said: Annotated[list[str], operator.add]


model = ChatOpenAI(model="gpt-4o", max_retries=1)


async def plan(state: State) -> State:
    reply = await model.ainvoke(f"Plan {len(state['said'])} {uuid.uuid4()} at {time.time()}")
    return {"said": [f"plan: {reply.content} {reply.id}"]}


async def branch(name: str, state: State) -> State:
    await asyncio.sleep(random.random() / 10)
    pieces = [
        chunk.text async for chunk in model.astream(f"{name} {len(state['said'])} {random.random()} {time.time_ns()}")
    ]
    return {"said": [f"{name}: {''.join(pieces)}"]}


async def left(state: State) -> State:
    return await branch("left", state)


async def right(state: State) -> State:
    return await branch("right", state)


def join(state: State) -> State:
    reply = model.invoke(f"Join {len(state['said'])} {uuid.uuid4()}")
    return {"said": [f"join: {reply.content}"]}


async def main() -> None:
    builder = StateGraph(State)
    for node in (plan, left, right, join):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "plan")
    for name in ("left", "right"):
        builder.add_edge("plan", name)
        builder.add_edge(name, "join")
    builder.add_edge("join", END)
    graph = builder.compile(checkpointer=MemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}}
    final = await graph.ainvoke({"said": []}, config)
    for line in final["said"]:
        print(line)
    async for state in graph.aget_state_history(config):
        print(state.created_at, state.config["configurable"]["checkpoint_id"])


asyncio.run(main())
