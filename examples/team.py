"""A team: a planner splits the question, two workers research on threads of their own, a synthesizer writes it up.

The search that the workers use is a local function whose results come in another order, with another score and another
date each time. It is marked as a tool, so a replay gives what it gave and does not run it.

usage: python team.py [QUESTION]
"""

import json
import random
import sys
import threading
import time

from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from tapeproxy.hints import agent, final_state, message, received, tool

MODEL = "gpt-4o-mini"
PAGES = ("The moon pulls the nearer ocean.", "A second bulge rises on the far side.", "Gauges on the coast tell.")
SEARCH: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Find sentences.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


@tool
def search(query: str) -> list[dict[str, object]]:
    """Sentences about a query, as no two searches find them."""
    time.sleep(random.uniform(0.01, 0.05))
    hits = [{"sentence": page, "score": round(random.random(), 3), "at": time.time()} for page in PAGES]
    random.shuffle(hits)
    return [{"query": query}, *hits[:2]]


def ask(client: OpenAI, messages: list[ChatCompletionMessageParam]) -> str:
    """What the model says in the end, with the search as its tool."""
    while True:
        completion = client.chat.completions.create(model=MODEL, messages=messages, tools=[SEARCH])
        answer = completion.choices[0].message
        if not answer.tool_calls:
            return answer.content or ""
        messages.append({"role": "assistant", "tool_calls": answer.model_dump()["tool_calls"]})
        for call in answer.tool_calls:
            assert call.type == "function"
            found = json.dumps(search(**json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})


def work(client: OpenAI, name: str, task: str, findings: dict[str, str]) -> None:
    with agent(name):
        received("planner")
        findings[name] = ask(client, [{"role": "user", "content": f"Research: {task}"}])
        message("synthesizer", findings[name])


def main() -> None:
    question = sys.argv[1] if len(sys.argv) > 1 else "Why are there two tides a day?"
    findings: dict[str, str] = {}
    with OpenAI() as client:
        with agent("planner"):
            tasks = ask(client, [{"role": "user", "content": f"Split into two tasks: {question}"}]).split("; ")[:2]
            workers = []
            for name, task in zip(("worker_a", "worker_b"), tasks, strict=True):
                message(name, task)
                workers.append(threading.Thread(target=work, args=(client, name, task, findings), name=name))
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        with agent("synthesizer"):
            for name in ("worker_a", "worker_b"):
                received(name)
                print(f"{name}: {findings[name]}")
            notes = " ".join(findings[name] for name in sorted(findings))
            answer = ask(client, [{"role": "user", "content": f"Write up: {notes}"}])
    print(answer)
    final_state({"question": question, "answer": answer})


if __name__ == "__main__":
    main()
