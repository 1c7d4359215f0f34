"""Makes the calls in a JSON file with the SDK each is for, one after the other, and prints what came of each."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import httpx


def unknown(create, body):
    """Takes out of a body what this version of an SDK has no argument for."""
    known = inspect.signature(create).parameters
    return {name: body.pop(name) for name in list(body) if name not in known}


def call(step):
    kind, base, path, body = step["sdk"], step["base"], step["path"], step["body"]
    if kind == "httpx":
        with httpx.Client(timeout=30) as client:
            asked = client.build_request(step["method"], base + path, json=body, headers=step["headers"])
            with_body = client.send(asked)
            return [with_body.status_code, with_body.text]
    if kind == "anthropic":
        import anthropic

        client = anthropic.Anthropic(api_key="x", max_retries=0, base_url=base)
        got = client.messages.create(extra_body=unknown(client.messages.create, body), **body)
        return "".join(getattr(e.delta, "text", "") for e in got if e.type == "content_block_delta")
    import openai

    client = openai.OpenAI(api_key="x", max_retries=0, base_url=base + path.split("/chat/")[0].split("/embeddings")[0])
    create = client.embeddings.create if path.endswith("/embeddings") else client.chat.completions.create
    try:
        got: Any = create(extra_body=unknown(create, body), **body)
    except openai.APIStatusError as error:
        return [error.status_code]
    if body.get("stream"):
        return "".join(c.choices[0].delta.content or "" for c in got if c.choices)
    if path.endswith("/embeddings"):
        return len(got.data)
    return got.choices[0].message.content


for step in json.loads(Path(sys.argv[1]).read_text()):
    print(json.dumps(call(step)), flush=True)
