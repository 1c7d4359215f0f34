"""Sends a secret in every place where one can stand. Which, it is told by a file; it prints nothing but how many.

Usage: forty_secrets.py PLAN [EXTRA], PLAN a JSON object of place and secret. With EXTRA (not -), one more request is
made that no tape has, and its answer is written to that file.
"""

import base64
import gzip
import hashlib
import hmac
import json
import subprocess
import sys
import threading
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, urlencode

import brotli
import requests
import zstandard
from openai import OpenAI

HOST = "https://search.example.com"
plan: dict[str, str] = json.loads(Path(sys.argv[1]).read_text())
session = requests.Session()
sent = 0


def ask(method: str, path: str, **options: object) -> requests.Response:
    global sent
    sent += 1
    return session.request(method, HOST + path, timeout=20, allow_redirects=False, **options)  # type: ignore[arg-type]


def post(path: str, body: object, kind: str = "application/json", **headers: str) -> requests.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask("POST", path, data=data, headers={"Content-Type": kind} | headers)


def signed(secret: str, at: datetime) -> dict[str, str]:
    """The headers of a request that is signed as AWS wants it, near enough."""
    date = at.strftime("%Y%m%dT%H%M%SZ")
    signature = hmac.new(secret.encode(), date.encode(), hashlib.sha256).hexdigest()
    scope = f"{plan['aws id']}/{date[:8]}/us-east-1/bedrock/aws4_request"
    value = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature={signature}"
    return {"Authorization": value, "X-Amz-Date": date, "X-Amz-Security-Token": plan["aws session"]}


def main() -> None:
    now = datetime.now(UTC) + timedelta(seconds=int(plan["later"]))
    ask("GET", "/bearer", headers={"Authorization": f"Bearer {plan['bearer']}"})
    ask("GET", "/x-api-key", headers={"X-Api-Key": plan["x-api-key"], "X-Goog-Api-Key": plan["x-goog-api-key"]})
    ask("GET", "/basic", auth=("user", plan["basic"]))
    ask("GET", "/cookie", headers={"Cookie": f"theme=dark; session={plan['cookie']}"})
    ask("GET", "/header", headers={"X-Note": f"see {plan['env in header']}", "X-Other": plan["look in header"]})
    ask("GET", "/signed", headers=signed(plan["aws secret"], now))
    presigned = {"X-Amz-Credential": plan["query credential"], "X-Amz-Signature": plan["query signature"]}
    ask("GET", "/presigned?" + urlencode(presigned | {"X-Amz-Date": now.strftime("%Y%m%dT%H%M%SZ")}))
    ask("GET", f"/query?api_key={quote(plan['query'], safe='')}&q={plan['look in query']}&n=1")
    ask("GET", f"/bot/{plan['look in path']}/x/{quote(plan['env in path'], safe='')}")
    post("/json", {"user": "u", "deep": [{"password": plan["json"]}], "note": f"use {plan['look in json']} now"})
    post("/nested", {"arguments": json.dumps({"client_secret": plan["nested"], "n": 1})})
    post("/env", {"a": plan["env in json"], "b": json.dumps({"c": plan["env nested"]})})
    for n in range(3):
        post("/base64", {"blob": base64.b64encode(b"x" * n + plan[f"base64 {n}"].encode()).decode()})
    post("/jwt", {"text": plan["jwt"]})
    post("/pem", {"key": f"-----BEGIN PRIVATE KEY-----\n{plan['pem']}\n-----END PRIVATE KEY-----\n"})
    own = {"pin": plan["own field"], "card": {"owner": plan["own path"]}, "note": f"case-{plan['own pattern']}."}
    post("/own", own, **{"X-Odd": plan["own header"]})
    form = "application/x-www-form-urlencoded"
    post("/form", urlencode({"user": "u", "password": plan["form"], "text": plan["look in form"]}).encode(), form)
    post("/payload", urlencode({"payload": json.dumps({"api_key": plan["json in form"]})}).encode(), form)
    ask("POST", "/parts", files={"password": (None, plan["part"]), "file": ("a.txt", f"K={plan['look in part']}")})
    post("/text", f"postgres://u:{plan['url in text']}@db/x".encode(), "text/plain")
    for coding, pack in {
        "gzip": lambda data: gzip.compress(data, mtime=0),
        "deflate": zlib.compress,
        "br": brotli.compress,
        "zstd": zstandard.compress,
    }.items():
        body = json.dumps({"password": plan[coding], "note": plan[f"look in {coding}"]}).encode()
        post("/coded", pack(body), **{"Content-Encoding": coding})
    for place in ("token", "gzip", "events", "deltas", "tool", "lines", "frames", "cookie", "moved", "reason", "echo"):
        ask("GET", f"/answers/{place}").content  # noqa: B018 - to read it all
    client = OpenAI(api_key=plan["openai"], max_retries=0)
    messages = [{"role": "user", "content": f"my key is {plan['look in prompt']}"}]
    for _ in client.chat.completions.create(model="m", messages=messages, stream=True):  # type: ignore[call-overload]
        pass
    subprocess.run([sys.executable, "-c", "pass", "--api-key", plan["argv"]], check=True)
    thread = threading.Thread(target=ask, args=("GET", "/thread"), name=f"worker {plan['env in thread']}")
    thread.start()
    thread.join()
    if sys.argv[2:3] not in ([], ["-"]):
        headers = {"Authorization": f"Bearer {plan['bearer']}", "X-Note": plan["env in header"]}
        path = f"/extra/{plan['look in path']}?api_key={plan['query']}"
        body = {"password": plan["json"], "b": plan["env in json"], "c": plan["look in json"]}
        Path(sys.argv[2]).write_bytes(ask("POST", path, json=body, headers=headers).content)
    print(sent)


main()
