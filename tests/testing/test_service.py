"""Routing: which address answers what, for any host."""

from typing import Any

import orjson
import pytest

from tapeproxy.testing.answers import Playbook
from tapeproxy.testing.chance import Dice
from tapeproxy.testing.delivery import Response
from tapeproxy.testing.inbox import Request
from tapeproxy.testing.script import read_script
from tapeproxy.testing.service import Service

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def respond(method: str, target: str, body: object = b"", script: dict[str, Any] | None = None) -> Response:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    service = Service(Playbook(read_script(script or {})), Dice())
    return service.respond(Request(method, target, (("host", "any.example"),), raw))


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "field"),
    [
        ("POST", "/v1/chat/completions", CHAT, 200, "choices"),
        ("POST", "/chat/completions", CHAT, 200, "choices"),
        ("POST", "https://api.openai.com/v1/chat/completions", CHAT, 200, "choices"),
        ("POST", "/v1/responses", {"model": "m", "input": "hi"}, 200, "output"),
        ("POST", "/v1/messages?beta=true", {**CHAT, "max_tokens": 9}, 200, "stop_reason"),
        ("POST", "/v1beta/models/m:generateContent?key=k", GEMINI, 200, "candidates"),
        ("POST", "/v1beta/models/m:generateContent", CHAT, 400, "error"),
        ("GET", "/v1beta/models/m:generateContent", b"", 404, "error"),
        ("GET", "/search?q=tides", b"", 200, "results"),
        ("HEAD", "/search?q=tides", b"", 200, "results"),
        ("GET", "/search", b"", 200, "results"),
        ("GET", "/pages/tides", b"", 200, "text"),
        ("GET", "/pages/nothing", b"", 404, "error"),
        ("GET", "/v1/chat/completions", b"", 404, "error"),
        ("POST", "/search?q=tides", b"", 404, "error"),
        ("GET", "/", b"", 404, "error"),
        ("POST", "/v1/chat/completions", b"{", 400, "error"),
        ("POST", "/v1/chat/completions", b"\xff", 400, "error"),
        ("POST", "/v1/chat/completions", [1], 400, "error"),
        ("POST", "/v1/responses", {"model": "m"}, 400, "error"),
        ("POST", "/v1/messages", CHAT, 400, "request_id"),
    ],
)
def test_routes(method: str, target: str, body: object, status: int, field: str) -> None:
    response = respond(method, target, body)
    assert response.status == status
    assert ("content-type", "application/json") in response.headers
    assert field in orjson.loads(response.body)


def test_the_404_says_what_is_served() -> None:
    message = orjson.loads(respond("GET", "/v1/models").body)["error"]["message"]
    assert "GET /v1/models" in message
    assert "/chat/completions" in message


@pytest.mark.parametrize(
    ("entry", "target", "status", "wait"),
    [
        ({"status": 429}, "/v1/chat/completions", 429, "1"),
        ({"status": 503, "retry_after": 0.25}, "/v1/chat/completions", 503, "0.25"),
        ({"when": {"api": "search"}, "status": 429}, "/search?q=x", 429, "1"),
        ({"when": {"api": "search", "user": "tides"}, "status": 500}, "/pages/tides", 500, None),
    ],
)
def test_scripted_errors(entry: dict[str, Any], target: str, status: int, wait: str | None) -> None:
    method = "POST" if "chat" in target else "GET"
    response = respond(method, target, CHAT, {"reply": [entry]})
    assert response.status == status
    assert dict(response.headers).get("retry-after") == wait


def test_scripted_headers_are_added_in_order() -> None:
    script = {"headers": {"x-all": "1"}, "reply": [{"headers": {"Set-Cookie": ["a=1", "b=2"]}}]}
    response = respond("POST", "/v1/chat/completions", CHAT, script)
    assert response.headers[-3:] == (("x-all", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2"))
