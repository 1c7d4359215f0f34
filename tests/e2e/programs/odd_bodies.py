"""Requests whose bytes are others in every run although they ask the same: codings, key orders, signatures."""

import datetime
import gzip
import hashlib
import hmac
import json
import os
import random
import uuid
import zlib

import brotli
import httpx
import requests
import zstandard

URL = "https://search.example.com"
client = httpx.Client(timeout=30)
chance = random.SystemRandom()


def show(name: str, reply: httpx.Response) -> None:
    print(name, reply.status_code, reply.text, flush=True)


def shuffled(value: dict[str, object], indents: tuple[int | None, ...] = (None, 1, 2)) -> bytes:
    items = list(value.items())
    chance.shuffle(items)
    return json.dumps(dict(items), indent=chance.choice(indents)).encode()


def codings() -> None:
    """Case 16: compressed answers, and requests at another level and with another order of keys each time."""
    for coding in ("gzip", "deflate", "br", "zstd"):
        reply = client.get(f"{URL}/coded", params={"coding": coding})
        show(reply.headers["content-encoding"], reply)
    for name, compress in (
        ("gzip", lambda data: gzip.compress(data, chance.randint(1, 9))),
        ("deflate", lambda data: zlib.compress(data, chance.randint(1, 9))),
        ("br", lambda data: brotli.compress(data, quality=chance.randint(1, 9))),
        ("zstd", lambda data: zstandard.compress(data, chance.randint(1, 9))),
        ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    ):
        for turn in (1, 2):
            body = compress(shuffled({"turn": turn, "a": [1, 2], "b": "é" * 50}))
            headers = {"content-type": "application/json", "content-encoding": name}
            show(name, client.post(f"{URL}/echo", content=body, headers=headers))


def signed() -> None:
    """Case 22: SigV4 in the headers, and in a URL."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
    body = shuffled({"anthropic_version": "bedrock-2023-05-31", "messages": []})
    signature = hmac.new(os.urandom(16), now.encode() + body, hashlib.sha256).hexdigest()
    scope = f"AKIAIOSFODNN7EXAMPLE/{now[:8]}/us-east-1/bedrock/aws4_request"
    headers = {
        "content-type": "application/json",
        "x-amz-date": now,
        "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
        "amz-sdk-invocation-id": str(uuid.uuid4()),
        "authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature={signature}",
    }
    show("sigv4", client.post(f"{URL}/model/claude%3A0/invoke", content=body, headers=headers))
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Date": now,
        "X-Amz-Credential": scope,
        "X-Amz-Signature": signature,
    }
    show("signed URL", client.get(f"{URL}/bucket/key", params={**query, "versionId": "1"}))


def shapes() -> None:
    """Cases 18, 21 and 35: parts of JSON, names that are not ASCII, lines of JSON, forms in any order."""
    for text in (b"--boundary", os.urandom(0)):
        reply = requests.post(
            f"{URL}/upload",
            files=[
                ("meta", (None, shuffled({"a": 1, "b": 2, "c": 3}), "application/json")),
                ("file", ("名前.bin", b"\0\xff" + text, "application/octet-stream")),
            ],
            timeout=30,
        )
        print("parts", reply.status_code, reply.text, flush=True)
    lines = b"\n".join(shuffled({"n": n, "x": 0, "y": 1}).replace(b"\n", b"") for n in range(3))
    show("lines", client.post(f"{URL}/bulk", content=lines, headers={"content-type": "application/x-ndjson"}))
    fields = [("a", "1"), ("b", "2"), ("c", "3")]
    chance.shuffle(fields)
    show("form", client.post(f"{URL}/form", data=dict(fields)))


def turns() -> None:
    """Cases 1, 3, 5, 6, 7 and 8: counters, interleaved URLs, tool loops, histories with one last message."""
    for path in ("n", "a", "b", "n", "b", "a", "n"):
        show(path, client.get(f"{URL}/{path}"))
    user, empty = {"role": "user", "content": "go on"}, {"role": "assistant", "content": ""}
    # The first and the last are the same request. A client keeps to one style: another length is another client.
    for model, history in (("m", [user]), ("m", [empty, user]), ("n", [user]), ("m", [user])):
        body, headers = shuffled({"model": model, "messages": history}, (None,)), {"content-type": "application/json"}
        show("chat", client.post(f"{URL}/chat", content=body, headers=headers))


codings()
signed()
shapes()
turns()
