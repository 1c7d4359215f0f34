"""A request changed on its way out: its body, its system prompt, its model. Knows dialects, not who sends it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from tapeproxy.tapes.calls import dialect_of
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.jsonedits import Change, UnfitError, edit_json
from tapeproxy.tapes.jsonpaths import JsonPath, parse_path
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import Headers, Request

_LENGTH: Final = b"content-length"
_SYSTEM_ROLES: Final = ("system", "developer")
# Where the model is named in the path: by Bedrock, by Gemini and on Vertex, on Azure.
_MODEL_IN_PATH: Final = re.compile(
    r"(?<=/model/)[^/?]+(?=/(?:invoke|converse))|(?<=/models/)(?:(?!%3[aA])[^/:?])+(?=:|%3[aA])"
    r"|(?<=/deployments/)[^/?]+(?=/)"
)
_NOT_IN_BODY: Final = ("gemini", "bedrock-converse")
"""Dialects whose bodies name no model."""


@dataclass(frozen=True, slots=True)
class _Body:
    """The body of a request, decoded; `dialect` is that of a request to a model."""

    data: bytes
    coding: tuple[str, ...]
    dialect: str | None


def is_call(request: Request) -> bool:
    """Whether a request is one to a model, in a dialect that is known."""
    return _open(request).dialect is not None


def change_request(request: Request, path: JsonPath, change: Change) -> Request:
    """Change the JSON body of a request. Raises UnfitError."""
    return _changed(request, lambda body: edit_json(body.data, path, change))


def change_system(request: Request, text: str) -> Request:
    """Give a request to a model another system prompt, in the place of the one it has, if any. Raises UnfitError."""

    def changed(body: _Body) -> bytes:
        value: Any = read_json(body.data)[0]
        match body.dialect:
            case "openai-chat":
                return _with_message(body.data, "messages", value, {"role": "system", "content": text})
            case "openai-responses":
                if "instructions" not in value and _leading(value.get("input")):
                    return _with_message(body.data, "input", value, {"role": "system", "content": text})
                return edit_json(body.data, parse_path("$.instructions"), Change("set", text))
            case "ollama" if "messages" in value:
                return _with_message(body.data, "messages", value, {"role": "system", "content": text})
            case "anthropic" | "ollama":
                return edit_json(body.data, parse_path("$.system"), Change("set", text))
            case "bedrock-converse":
                return edit_json(body.data, parse_path("$.system"), Change("set", [{"text": text}]))
            case "gemini":
                name = "system_instruction" if "system_instruction" in value else "systemInstruction"
                return edit_json(body.data, parse_path(f"$.{name}"), Change("set", {"parts": [{"text": text}]}))
            case _:
                raise UnfitError("it is no request to a model that is known, and has no system prompt")

    return _changed(request, changed)


def change_model(request: Request, name: str) -> Request:
    """Have another model asked: in the body, and in the URL where the model is named there. Raises UnfitError."""
    body = _open(request)
    if body.dialect is None:
        raise UnfitError("it is no request to a model that is known, and names none")
    url = request.url.decode("latin-1")
    base, mark, query = url.partition("?")
    if body.dialect == "gemini":
        name = name.removeprefix("models/")
    moved = _MODEL_IN_PATH.sub(quote(name, safe=""), base)
    value: Any = read_json(body.data)[0]
    if body.dialect in _NOT_IN_BODY and not _MODEL_IN_PATH.search(base):
        raise UnfitError(f"its URL names no model that could be another: {base}")
    if body.dialect not in _NOT_IN_BODY and ("model" in value or moved == base):
        request = change_request(request, parse_path("$.model"), Change("set", name))
    return replace(request, url=(moved + mark + query).encode("latin-1"))


def _open(request: Request) -> _Body:
    assert isinstance(request.body, bytes)  # the decoder resolves references
    decoded = decode(request.body, request.headers)
    if not decoded.whole:
        raise UnfitError(f"the request's body cannot be edited: {decoded.note}")
    return _Body(decoded.data, decoded.coding, dialect_of(request.url, request.headers, request.body))


def _changed(request: Request, change: Callable[[_Body], bytes]) -> Request:
    body = _open(request)
    data = change(body)
    if data == body.data:
        return request
    new = encode(data, body.coding)
    return replace(request, body=new, headers=_with_length(request.headers, len(new)))


def _with_length(headers: Headers, length: int) -> Headers:
    return tuple((name, b"%d" % length if name.lower() == _LENGTH else value) for name, value in headers)


def _leading(messages: Any) -> int:
    """How many system prompts a conversation begins with."""
    count = 0
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict) or message.get("role") not in _SYSTEM_ROLES:
            break
        count += 1
    return count


def _with_message(data: bytes, field: str, value: Any, prompt: dict[str, str]) -> bytes:
    """A conversation that begins with the prompt, in the place of those it begins with."""
    messages = value.get(field)
    if not isinstance(messages, list):
        raise UnfitError(f"$.{field} is no list of messages")
    count = _leading(messages)
    if not count:
        return edit_json(data, parse_path(f"$.{field}"), Change("prepend", prompt))
    for index in reversed(range(1, count)):
        data = edit_json(data, parse_path(f"$.{field}[{index}]"), Change("delete"))
    return edit_json(data, parse_path(f"$.{field}[0].content"), Change("set", prompt["content"]))
