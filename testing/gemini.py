"""Gemini's generateContent on the wire: request in, JSON body and SSE events out. Decides nothing about the answer.

The model, and whether the answer is streamed, stand in the address. Shapes follow
https://ai.google.dev/api/generate-content.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from tapeproxy.testing import sse
from tapeproxy.testing.chance import Chance
from tapeproxy.testing.conversation import (
    Ask,
    AskError,
    Json,
    Reply,
    Tool,
    dumps,
    items_of,
    mapping_of,
    required_list,
    text_of,
)

PATHS: Final = ("/models/MODEL:generateContent", "/models/MODEL:streamGenerateContent")
_PATH: Final = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)")
_STATUSES: Final = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


class Gemini:
    """The dialect of one address."""

    NAME: str = "gemini"

    def __init__(self, model: str, streamed: bool) -> None:
        self.PATH = f"/models/{model}:{'streamGenerateContent' if streamed else 'generateContent'}"
        self._model = model
        self._streamed = streamed

    def read(self, body: Mapping[str, object]) -> Ask:
        """Read a request body; raises AskError."""
        contents = required_list(body, "contents")
        if not contents:
            raise AskError("* GenerateContentRequest.contents: contents is not specified", fix="send contents")
        user, results = _read_contents(contents)
        tools, must_call = _choose([*_tools(body)], mapping_of(mapping_of(body.get("toolConfig"))))
        return Ask(
            model=self._model,
            body=body,
            user=user,
            tools=tools,
            must_call=must_call,
            tool_results=results,
            output_schema=_output_schema(mapping_of(body.get("generationConfig"))),
            stream=self._streamed,
        )

    def compose(self, ask: Ask, reply: Reply, chance: Chance) -> Json:
        """The `GenerateContentResponse` that says `reply`."""
        parts: list[Json] = [{"text": reply.text}] if reply.text or not reply.tool_calls else []
        parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in reply.tool_calls]
        return {
            "candidates": [_candidate(parts, "STOP")],
            "usageMetadata": {
                "promptTokenCount": ask.input_words,
                "candidatesTokenCount": reply.words,
                "totalTokenCount": ask.input_words + reply.words,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": ask.input_words}],
            },
            "modelVersion": ask.model,
            "responseId": chance.alnum(22),
        }

    def stream(self, _ask: Ask, composed: Json, chance: Chance) -> tuple[bytes, ...]:
        """The events that carry a composed response: text in pieces, each call whole, why it stopped in the last."""
        return tuple(map(sse.event, _chunks(composed, chance)))

    def refuse(self, status: int, message: str, _chance: Chance) -> Json:
        """The error body for `status`; an empty `message` means the service's usual words."""
        other = ("INTERNAL", "An internal error has occurred.") if status >= 500 else _STATUSES[400]
        name, usual = _STATUSES.get(status, other)
        return {"error": {"code": status, "message": message or usual, "status": name}}

    def headers(self, chance: Chance) -> tuple[tuple[str, str], ...]:
        """The headers that the service puts on every answer."""
        return (
            ("date", chance.date),
            ("server", "scaffolding on HTTPServer2"),
            ("server-timing", f"gfet4t7; dur={chance.rng.randint(80, 900)}"),
            ("vary", "Origin"),
        )


def at(path: str) -> Gemini | None:
    """The dialect of this address; None when it is not one of Gemini's."""
    found = _PATH.search(path)
    if found is None or found.end() != len(path):
        return None
    return Gemini(found["model"], found["verb"].startswith("stream"))


def _read_contents(contents: list[Json]) -> tuple[str, tuple[str, ...]]:
    """The last user text, and the results of functions since; results come in a content of the user's own."""
    user, results = "", list[str]()
    for content in contents:
        if content.get("role") == "model":
            continue
        parts = items_of(content.get("parts"))
        found = [mapping_of(part["functionResponse"]) for part in parts if "functionResponse" in part]
        text = text_of(content.get("parts"))
        if text and not found:
            user, results = text, []
        results += [_result(mapping_of(response.get("response"))) for response in found]
    return user, tuple(results)


def _result(response: Json) -> str:
    """What a function gave: clients put a text in an object of one field."""
    (value, *more) = response.values() if response else [""]
    return value if isinstance(value, str) and not more else dumps(response)


def _tools(body: Mapping[str, object]) -> Iterator[Tool]:
    for tool in items_of(body.get("tools")):
        for declared in items_of(tool.get("functionDeclarations")):
            if isinstance(name := declared.get("name"), str):
                schema = declared.get("parametersJsonSchema") or declared.get("parameters")
                yield Tool(name, mapping_of(_plain_schema(schema)))


def _choose(tools: list[Tool], config: Json) -> tuple[tuple[Tool, ...], bool]:
    calling = mapping_of(config.get("functionCallingConfig"))
    names = calling.get("allowedFunctionNames")
    if calling.get("mode") == "NONE":
        return (), False
    left = tuple(tool for tool in tools if not isinstance(names, list) or not names or tool.name in names)
    return left, calling.get("mode") == "ANY"


def _output_schema(config: Json) -> Json | None:
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema is None and config.get("responseMimeType") == "application/json":
        return {"type": "object"}
    return mapping_of(_plain_schema(schema)) if schema is not None else None


def _plain_schema(schema: object) -> object:
    """A schema of Gemini's own kind as JSON schema: its types are written in capitals."""
    if isinstance(schema, list):
        return [_plain_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain_schema(value) for key, value in schema.items()}
    kind = plain.get("type")
    return {**plain, "type": kind.lower()} if isinstance(kind, str) else plain


def _chunks(composed: Json, chance: Chance) -> Iterator[Json]:
    (candidate,) = items_of(composed["candidates"])
    pieces: list[Json] = []
    for part in items_of(mapping_of(candidate["content"])["parts"]):
        text = part.get("text")
        pieces += [{"text": piece} for piece in chance.split_text(text)] if isinstance(text, str) else [part]
    for piece in pieces[:-1]:
        yield {**composed, "candidates": [_candidate([piece], None)]}
    yield {**composed, "candidates": [_candidate(pieces[-1:] or [{"text": ""}], "STOP")]}


def _candidate(parts: list[Json], reason: str | None) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    return candidate if reason is None else {**candidate, "finishReason": reason}
