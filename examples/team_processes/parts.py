"""What the four programs of the team share: a server for one request, a model with a search, and how to ask each other.

The model is asked over plain HTTP: four processes that load an SDK each would take some seconds to start.
"""

import json
import os
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx

from tapeproxy.hints import tool

MODEL = "gpt-4o-mini"
PAGES = ("The moon pulls the nearer ocean.", "A second bulge rises on the far side.", "Gauges on the coast tell.")
SEARCH = {
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


def ask_model(prompt: str) -> str:
    """What the model says in the end, with the search as its tool."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with httpx.Client(base_url="https://api.openai.com/v1", headers=headers, timeout=60) as client:
        while True:
            asked = {"model": MODEL, "messages": messages, "tools": [SEARCH]}
            answer = client.post("/chat/completions", json=asked).raise_for_status().json()["choices"][0]["message"]
            if not answer.get("tool_calls"):
                return str(answer["content"])
            messages.append(answer)
            for call in answer["tool_calls"]:
                found = json.dumps(search(**json.loads(call["function"]["arguments"])))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})


def serve_one(answer: Callable[[str], str]) -> None:
    """Listen on a port of the system's choice, print it, answer one POST, and end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["content-length"])).decode()
            body = answer(asked).encode()
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass  # the output is the planner's

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.handle_request()


class Colleague:
    """Another program of the team, in a process of its own."""

    def __init__(self, program: str, *words: str) -> None:
        argv = [sys.executable, str(Path(__file__).with_name(program)), *words]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/"

    def ask(self, text: str) -> str:
        """Send it a text over HTTP; returns what it says, and waits for its end."""
        with urllib.request.urlopen(urllib.request.Request(self._url, text.encode())) as response:
            said = str(response.read().decode())
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()
        return said
