"""One exchange as a JSON document, in short or whole. Knows field names; `show --json` and the viewer have the same.

The names are stable: more may come, none goes or changes its meaning. Times end in `_ns`, are integers, and count from
the tape's start (`at_ns`) or from the request (`first_byte_ns`, `total_ns`).
"""

import base64
from dataclasses import asdict
from typing import Any

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Call, Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.messages import Message as SocketMessage
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.records import End, Headers, Json, Response
from tapeproxy.tapes.summary import Row, summarise

_KINDS: dict[type[Part], str] = {
    Text: "text",
    Thought: "thought",
    ToolCall: "tool-call",
    ToolResult: "tool-result",
    Media: "media",
}


def row_document(row: Row) -> Json:
    """One exchange in short."""
    return {
        "number": row.number,
        "lane": row.lane,
        "method": row.method,
        "scheme": row.target.scheme,
        "host": row.target.host,
        "path": row.target.path,
        "query": row.target.query,
        "status": row.status,
        "how": row.how,
        "dialect": row.dialect,
        "model": row.model,
        "mcp": None if row.mcp is None else row.mcp.to_json(),
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "tokens_cached": row.tokens_cached,
        "tokens_written": row.tokens_written,
        "chunks": row.chunks,
        "size": row.size,
        "first_byte_ns": row.first_byte,
        "total_ns": row.total,
        "error": row.error,
    }


def exchange_document(exchange: Exchange) -> Json:
    """One exchange whole: `show TAPE N --json`."""
    request = exchange.request
    call = read_call(exchange)
    return {
        "exchange": row_document(summarise(exchange)),
        "request": {
            "at_ns": request.t,
            "method": request.method.decode("latin-1"),
            "url": request.url.decode("latin-1"),
            "http": request.http,
            "alpn": request.alpn,
            "inside": request.inside,
            "headers": _headers(request.headers),
            "body": _body(exchange.request_body, request.headers),
            "chunks": _chunks(exchange.uploads),
        },
        "response": None if exchange.response is None else _response(exchange, exchange.response),
        "messages": [_said(one) for one in read_frames(exchange.frames)],
        "end": None if exchange.end is None else _end(exchange.end),
        "call": None if call is None else _call(call),
    }


def _response(exchange: Exchange, response: Response) -> Json:
    return {
        "at_ns": response.t,
        "status": response.status,
        "reason": response.reason.decode("latin-1"),
        "http": response.http,
        "framing": response.framing,
        "informational": [[status, _headers(headers)] for status, headers in response.informational],
        "headers": _headers(response.headers),
        "body": _body(exchange.response_body, response.headers),
        "chunks": _chunks(exchange.chunks),
    }


def _body(body: bytes, headers: Headers) -> Json:
    """`size` on the tape; the content with its codings undone as `text`, or as `b64` when it is not UTF-8."""
    decoded = decode(body, headers)
    about: Json = {"size": len(body), "coding": list(decoded.coding), "whole": decoded.whole, "note": decoded.note}
    try:
        return about | {"text": decoded.data.decode()}
    except UnicodeDecodeError:
        return about | {"b64": base64.b64encode(decoded.data).decode()}


def _said(message: SocketMessage) -> Json:
    about: Json = {"at_ns": message.t, "from": message.sender, "type": message.type}
    about |= {"code": message.code, "whole": message.whole, "size": len(message.data)}
    try:
        return about | {"text": message.data.decode()}
    except UnicodeDecodeError:
        return about | {"b64": base64.b64encode(message.data).decode()}


def _chunks(chunks: list[Chunk]) -> list[Json]:
    return [{"at_ns": chunk.t, "size": len(chunk.data)} for chunk in chunks]


def _end(end: End) -> Json:
    return {"at_ns": end.t, "how": end.how, "error": end.error, "trailers": _headers(end.trailers)}


def _headers(headers: Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _call(call: Call) -> Json:
    return {
        "dialect": call.dialect,
        "model": call.model,
        "messages": [_message(message) for message in call.messages],
        "answer": None if call.answer is None else _message(call.answer),
        "stop": call.stop,
        "tokens_in": call.tokens_in,
        "tokens_out": call.tokens_out,
        "tokens_cached": call.tokens_cached,
        "tokens_written": call.tokens_written,
        "error": call.error,
        "streamed": call.streamed,
    }


def _message(message: Message) -> Json:
    return {"role": message.role, "parts": [_part(part) for part in message.parts]}


def _part(part: Part) -> dict[str, Any]:
    """Its fields; `image` and `media` only where there is one."""
    fields = asdict(part)
    return {"kind": _KINDS[type(part)]} | {
        name: value for name, value in fields.items() if value or name not in ("image", "media")
    }
