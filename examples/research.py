"""A small research agent: the model searches and reads pages over another HTTP API until it can answer.

usage: python research.py [QUESTION]          SEARCH_URL: where the search API is
"""

import json
import os
import sys

import httpx
from openai import APIStatusError, OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

SEARCH_URL = os.environ.get("SEARCH_URL", "https://search.example.com")


def tool(name: str, description: str, argument: str) -> ChatCompletionToolParam:
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("search", "Find pages. Gives slugs, titles and first sentences.", "query"),
    tool("read_page", "Read one page that a search found.", "slug"),
]


def call_tool(http: httpx.Client, name: str, arguments: dict[str, str]) -> str:
    if name == "search":
        return http.get("/search", params={"q": arguments["query"]}).text
    return http.get(f"/pages/{arguments['slug']}").text


def main() -> None:
    question = sys.argv[1] if len(sys.argv) > 1 else "Why are there two tides a day?"
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Answer from pages you have read. Name them."},
        {"role": "user", "content": question},
    ]
    with OpenAI() as client, httpx.Client(base_url=SEARCH_URL) as http:
        while True:
            completion = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
            message = completion.choices[0].message
            if not message.tool_calls:
                print(message.content)
                return
            messages.append({"role": "assistant", "tool_calls": message.model_dump()["tool_calls"]})
            for call in message.tool_calls:
                assert call.type == "function"
                print(f"{call.function.name} {call.function.arguments}")
                result = call_tool(http, call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    try:
        main()
    except APIStatusError as error:
        sys.exit(f"research: the model's API answered with status {error.status_code}")
