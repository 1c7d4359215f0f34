"""boto3 with Bedrock: a streamed tool loop with two calls at once (ConverseStream), then three at once in threads."""

# What is imported is in the agents' own environment (.venv-matrix).
# pyright: reportMissingImports=false
import datetime
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {"tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": CITY}}}]}
client: Any = boto3.client("bedrock-runtime", region_name="us-east-1")


def get_weather(call: Any) -> Any:
    text = f"{json.loads(call['input'])['city']}: rain at {time.time_ns()}"
    return {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": text}]}}


def ask(messages: list[Any], **more: Any) -> tuple[str, list[Any]]:
    """The text in its pieces, and the calls of tools."""
    stream = client.converse_stream(modelId="anthropic.claude-sonnet-4-5-v1:0", messages=messages, **more)["stream"]
    pieces: list[str] = []
    calls: list[Any] = []
    for event in stream:
        if "contentBlockStart" in event:
            calls.append(event["contentBlockStart"]["start"]["toolUse"] | {"input": ""})
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            if "text" in delta:
                pieces.append(delta["text"])
            else:
                calls[-1]["input"] += delta["toolUse"]["input"]
    return "|".join(pieces), calls


def user(*content: Any) -> Any:
    return {"role": "user", "content": list(content)}


messages = [user({"text": f"The weather on {datetime.datetime.now()}? {uuid.uuid4()}"})]
with ThreadPoolExecutor() as pool:
    while True:
        text, calls = ask(messages, toolConfig=TOOLS)
        print(text)
        if not calls:
            break
        uses = [{"toolUse": call | {"input": json.loads(call["input"])}} for call in calls]
        messages += [{"role": "assistant", "content": uses}, user(*pool.map(get_weather, calls))]
    asked = [[user({"text": f"{name} {uuid.uuid4()}"})] for name in ("left", "right", "middle")]
    for text, _ in pool.map(ask, asked):
        print(text)
