"""A planner, two workers on threads at once, a synthesizer. Each worker asks a search tool, then the model, streamed.

usage: team.py [sdk] [nap SECONDS] [sleepy SECONDS]      see main
"""

import json
import os
import random
import sys
import threading
import time
import uuid

import httpx

WORDS = sys.argv[1:]
http = httpx.Client(base_url="https://search.example.com")


def value(word: str) -> float:
    """The number after a word of the command line, 0 without it."""
    return float(WORDS[WORDS.index(word) + 1]) if word in WORDS else 0.0


def ask(text: str) -> str:
    if "sdk" in WORDS:
        return ask_sdk(text)
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], "stream": True}
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with httpx.stream("POST", "https://api.openai.com/v1/chat/completions", json=body, headers=headers) as answer:
        events = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: {")]
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def ask_sdk(text: str) -> str:
    from openai import OpenAI

    with OpenAI(max_retries=0) as client:
        stream = client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": text}], stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def worker(name: str, topic: str, out: dict[str, str]) -> None:
    found = http.get("/search", params={"q": topic, "id": str(uuid.uuid4())}).json()
    titles = [page["title"] for page in found.get("results", [])]
    if not titles:  # another way, that the tape does not know
        helper = threading.Thread(target=lambda: out.update({f"{name} helper": ask(f"{name} found nothing")}))
        helper.start()
        helper.join()
    time.sleep(value("nap"))
    out[name] = ask(f"{name}{os.environ.get('TEAM_SAYS', '')}: {topic} at {time.time()}: {titles} {random.random()}")


def main() -> None:
    """`nap`: workers sleep after their search; `sleepy`: the planner, after its plan; `sdk`: ask by OpenAI's."""
    plan = ask(f"plan at {time.time()}")
    time.sleep(value("sleepy"))
    out: dict[str, str] = {}
    topics = {"worker_a": "tides", "worker_b": "moon"}
    threads = [threading.Thread(target=worker, args=(name, topic, out), name=name) for name, topic in topics.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"plan": plan, "out": out, "clock": time.time()}, sort_keys=True), flush=True)
    try:
        print(ask(f"synthesize {sorted(out)} at {time.time()}"), flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)


if __name__ == "__main__":
    main()
