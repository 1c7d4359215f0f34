"""An agent that asks a model twice, each time in a stream, and tells the second question what the first answer was.

`asks_twice.py openai-chat|openai-responses|anthropic|plain|gemini`: the last two without an SDK, for it takes long.
"""

import json
import os
import sys
import time
import urllib.request
from typing import Any

KIND = sys.argv[1]
FIRST = "Count to five, please."


def openai_chat(text: str) -> str:
    import openai

    asked = [{"role": "user", "content": text}]
    stream = openai.OpenAI().chat.completions.create(model="gpt-4o", messages=asked, stream=True)  # type: ignore[arg-type]  # plain dicts do
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def openai_responses(text: str) -> str:
    import openai

    with openai.OpenAI().responses.stream(model="gpt-4o", input=text) as stream:
        return stream.get_final_response().output_text


def anthropic(text: str) -> str:
    import anthropic as sdk

    asked = [{"role": "user", "content": text}]
    with sdk.Anthropic().messages.stream(model="claude-x", max_tokens=99, messages=asked) as stream:  # type: ignore[arg-type]  # plain dicts do
        return stream.get_final_text()


def plain(text: str) -> str:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], "stream": True}
    authorization = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    found = events("https://api.openai.com/v1/chat/completions", body, **authorization)
    return "".join(choice["delta"].get("content") or "" for event in found for choice in event["choices"])


def gemini(text: str) -> str:
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    found = events(url, {"contents": [{"role": "user", "parts": [{"text": text}]}]})
    return "".join(part["text"] for event in found for part in event["candidates"][0]["content"]["parts"])


def events(url: str, body: Any, **headers: str) -> list[Any]:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(asked) as answer:
        return [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]


ask = {
    "plain": plain,
    "gemini": gemini,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
}[KIND]
first = ask(FIRST)
print("first:", first)
print("colour:", os.environ.get("COLOUR"))
print("year:", time.gmtime().tm_year)
print("second:", ask(f"You said: {first}"))
