"""A tool-calling agent: OpenAI chat completions and one tool, in a loop until the model answers in words.

usage: python openai_tools.py [PROMPT]
"""

import json
import sys

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city, now.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def get_weather(city: str) -> str:
    """A stand-in for a real weather service."""
    return f"{len(city) * 3} °C and dry in {city}."


def main() -> None:
    prompt = sys.argv[1] if len(sys.argv) > 1 else "What is the weather in Lima?"
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": prompt}]
    client = OpenAI()
    while True:
        completion = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        message = completion.choices[0].message
        if not message.tool_calls:
            print(message.content)
            return
        messages.append(
            {"role": "assistant", "content": message.content, "tool_calls": message.model_dump()["tool_calls"]}
        )
        for call in message.tool_calls:
            assert call.type == "function"
            print(f"tool: {call.function.name}({call.function.arguments})")
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    main()
