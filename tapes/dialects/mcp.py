"""MCP: which method an exchange called, which tool with which arguments, and what came of it. Knows both transports.

JSON-RPC 2.0 in a request's body; the answer is a JSON object, or in an event of a stream (streamable HTTP). Whatever
the bytes are, nothing raises. Source: modelcontextprotocol.io, specification 2025-06-18 (tools, transports).
"""

from typing import Any, Final, NamedTuple

from tapeproxy.tapes.codings import decode, header
from tapeproxy.tapes.dialects.shapes import items_of, mapping_of, picture_of, text_of, written
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.sse import parse_events

_MARK: Final = b'"jsonrpc"'
_NAMES: Final = ("name", "uri")
_TITLE: Final = 60
"""Characters of arguments, and of a result, in a title."""


class McpCall(NamedTuple):
    """A message of a client's. `name`: of the tool or prompt, or a resource's URI. `arguments` and `result` are text.

    `result` is None where nothing came, or nothing was due; `error` says that it is one.
    """

    method: str
    name: str = ""
    arguments: str = ""
    result: str | None = None
    error: bool = False

    @property
    def title(self) -> str:
        """The call in a line: `tools/call weather {"city":"Paris"} → 18 degrees`."""
        words = " ".join(filter(None, (self.method, self.name, _short(self.arguments))))
        if not self.name or self.result is None:
            return words
        return f"{words} → {'error: ' if self.error else ''}{_short(self.result)}"

    def to_json(self) -> Json:
        return self._asdict()


def read_mcp(exchange: Exchange) -> McpCall | None:
    """The call that an exchange carries; None when it is something else."""
    asked = _asked(exchange)
    method = asked.get("method")
    if not isinstance(method, str) or not method:
        return None
    params = mapping_of(asked.get("params"))
    name = next((text_of(params.get(name)) for name in _NAMES if params.get(name)), "")
    arguments = written(params["arguments"]) if isinstance(params.get("arguments"), dict) else ""
    answered = _answered(exchange, asked.get("id"))
    if "error" in answered:
        return McpCall(method, name, arguments, text_of(mapping_of(answered["error"]).get("message")), error=True)
    if "result" not in answered:
        return McpCall(method, name, arguments)
    result = mapping_of(answered["result"])
    return McpCall(method, name, arguments, _text(result), error=result.get("isError") is True)


def listed_tools(exchange: Exchange) -> list[Json]:
    """The tools that a server lists in the answer of this exchange."""
    asked = _asked(exchange)
    if asked.get("method") != "tools/list":
        return []
    return items_of(mapping_of(_answered(exchange, asked.get("id")).get("result")).get("tools"))


def result_pictures(exchange: Exchange) -> list[str]:
    """The pictures in the result that this exchange brought, as data URLs: those that any browser can show."""
    result = mapping_of(_answered(exchange, _asked(exchange).get("id")).get("result"))
    found = (picture_of(item.get("data"), text_of(item.get("mimeType"))) for item in items_of(result.get("content")))
    return [picture for picture in found if picture is not None]


def _asked(exchange: Exchange) -> Json:
    body = exchange.request_body
    if exchange.request.method != b"POST" or _MARK not in body:
        return {}
    value = mapping_of(read_json(body)[0])
    return value if value.get("jsonrpc") == "2.0" else {}


def _answered(exchange: Exchange, number: Any) -> Json:
    response = exchange.response
    if response is None or number is None:
        return {}
    body = decode(exchange.response_body, response.headers).data
    if b"event-stream" in header(response.headers, b"content-type").lower():
        messages = [mapping_of(read_json(event.data.encode())[0]) for event in parse_events(body)]
    else:
        messages = [mapping_of(read_json(body)[0])]
    # On stdio the request's own id is not in its body, and there is one answer.
    return next((one for one in messages if "method" not in one and one.keys() & {"result", "error"}), {})


def _text(result: Json) -> str:
    """What a result says: the texts of its content, or all of it."""
    texts = [text_of(item.get("text")) or f"[{text_of(item.get('type'))}]" for item in items_of(result.get("content"))]
    return "\n".join(texts) if texts else written(result)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _TITLE else flat[: _TITLE - 1] + "…"
