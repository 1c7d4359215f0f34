"""Recordings of real traffic, as other projects keep them, turned into exchanges; absent on most machines."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import End, Headers, Request, Response

FOLDER = Path(__file__).parents[2] / "shared" / "cases" / "recordings"


def load_exchanges(name: str) -> list[Exchange]:
    """The exchanges of the recording whose file name contains `name`; skips the test where there are none."""
    found = sorted(FOLDER.glob(f"*{name}*")) if FOLDER.is_dir() else []
    if not found:
        pytest.skip(f"the recording {name!r} is not on this machine (a folder shared/cases beside the checkout)")
    pairs = _har(found[0]) if found[0].suffix == ".har" else _yaml(found[0])
    return [
        Exchange(number, number, request, response, [Chunk(None, body)], end=End(t=1, of=number, how="complete"))
        for number, (request, response, body) in enumerate(pairs, 1)
    ]


def names(suffix: str) -> list[str]:
    """The names of all recordings with that suffix; one that is skipped where there are none."""
    return [path.name for path in sorted(FOLDER.glob(f"*{suffix}"))] or [f"any{suffix}"]


def _yaml(path: Path) -> Iterator[tuple[Request, Response, bytes]]:
    from ruamel.yaml import YAML

    for pair in YAML(typ="safe").load(path.read_text())["interactions"]:
        asked, given = pair["request"], pair["response"]
        status = given.get("code") or given.get("status_code") or given["status"]
        yield (
            _request(asked["method"], asked.get("uri") or asked["url"], _headers(asked), _body(asked)),
            _response(status["code"] if isinstance(status, dict) else int(status), _headers(given)),
            _body(given),
        )


def _har(path: Path) -> Iterator[tuple[Request, Response, bytes]]:
    for entry in json.loads(path.read_text())["log"]["entries"]:
        asked, given = entry["request"], entry["response"]
        text = asked.get("postData", {}).get("text", "")
        content = given["content"]
        if content.get("encoding") == "base64":
            pieces = json.loads(content["text"]) if content["text"].startswith("[") else [content["text"]]
            body = b"".join(map(base64.b64decode, pieces))
        else:
            body = content.get("text", "").encode()
        headers = tuple((h["name"].encode(), h["value"].encode()) for h in given["headers"])
        yield _request(asked["method"], asked["url"], (), text.encode()), _response(given["status"], headers), body


def _request(method: str, url: str, headers: Headers, body: bytes) -> Request:
    return Request(t=0, method=method.encode(), url=url.encode(), headers=headers, body=body)


def _response(status: int, headers: Headers) -> Response:
    return Response(t=1, of=0, status=status, headers=headers)


def _headers(message: dict[str, Any]) -> Headers:
    pairs = ((name, value) for name, value in (message.get("headers") or {}).items())
    return tuple(
        (name.encode(), str(item).encode("latin-1", "replace"))
        for name, value in pairs
        for item in (value if isinstance(value, list) else [value])
    )


def _body(message: dict[str, Any]) -> bytes:
    body: Any = message.get("body", message.get("content"))
    if isinstance(body, dict) and "string" in body:
        body = body["string"]
    if "parsed_body" in message:
        body = json.dumps(message["parsed_body"])
    return body if isinstance(body, bytes) else str(body or "").encode()
