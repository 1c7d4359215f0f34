"""An agent that asks a model twice, each time in a stream, and tells the second question what the first answer was."""

import os
import sys
import time

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


ask = {"openai-chat": openai_chat, "openai-responses": openai_responses, "anthropic": anthropic}[KIND]
first = ask(FIRST)
print("first:", first)
print("colour:", os.environ.get("COLOUR"))
print("year:", time.gmtime().tm_year)
print("second:", ask(f"You said: {first}"))
