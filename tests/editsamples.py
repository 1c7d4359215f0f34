"""Answers of models in every dialect and coding, plain and streamed, for the tests of edits."""

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import End, Headers, How, Request, Response

URLS = {
    "openai-chat": "https://api.openai.com/v1/chat/completions",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "openai-responses": "https://api.openai.com/v1/responses",
    "ollama": "http://127.0.0.1:11434/api/chat",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/m-1:streamGenerateContent?alt=sse",
    "gemini list": "https://aiplatform.googleapis.com/v1/publishers/google/models/m-1:streamGenerateContent",
    "converse": "https://bedrock-runtime.us-east-1.amazonaws.com/model/m-1/converse-stream",
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com/model/m-1/invoke-with-response-stream",
}
STREAMS = [*URLS]
ASKED_GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
ASKED_CONVERSE: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
EVENTS = "text/event-stream; charset=utf-8"
FRAMES = "application/vnd.amazon.eventstream"
ASKED: dict[str, Any] = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}]}
ASKED_RESPONSES: dict[str, Any] = {"model": "m-1", "input": "hi"}


def answered(
    body: bytes | Sequence[bytes] = b"",
    kind: str = "application/json",
    *,
    url: str = "https://x.example/y",
    asked: Any = None,
    status: int = 200,
    coding: str = "",
    headers: Headers = (),
    how: How = "complete",
    method: bytes = b"POST",
) -> Exchange:
    """An exchange whose answer comes in the given pieces; with a coding, as one compressed body in two."""
    request_body = b"" if asked is None else json.dumps(asked).encode()
    pieces = [body] if isinstance(body, bytes) else list(body)
    given: Headers = ((b"Content-Type", kind.encode()), *headers)
    if coding:
        packed = encode(b"".join(pieces), (coding,))
        pieces = [packed[:20], packed[20:]]
        given += ((b"Content-Encoding", coding.encode()),)
    given += ((b"Content-Length", b"%d" % sum(map(len, pieces))),)
    request = Request(
        t=0,
        method=method,
        url=url.encode(),
        headers=((b"content-type", b"application/json"), (b"content-length", b"%d" % len(request_body))),
        body=request_body,
    )
    response = Response(t=5, of=7, status=status, reason=b"OK", headers=given, framing="length")
    chunks = [Chunk(10 * n, data) for n, data in enumerate(pieces, 1) if data]
    return Exchange(3, 7, request, response, chunks, end=End(t=100, of=7, how=how))


def sse(events: Sequence[Any], *, named: bool = False, done: bool = False) -> list[bytes]:
    """Events, a piece each."""
    out = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        out.append(f"{name}data: {json.dumps(event)}\n\n".encode())
    return [*out, b"data: [DONE]\n\n"] if done else out


def chat_stream(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c-1", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice], "usage": None}

    def call(text: str, **more: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "function": {"arguments": text}, **more}]}

    events = [chunk({"role": "assistant", "content": "" if texts else None})]
    events += [chunk({"content": text}) for text in texts]
    for n, text in enumerate(arguments):
        one = call(text, id="t1", type="function") if n == 0 else call(text)
        if n == 0:
            one["tool_calls"][0]["function"]["name"] = "look"
        events.append(chunk(one))
    events.append(chunk({}, "tool_calls" if arguments else "stop"))
    usage = {"prompt_tokens": 3, "completion_tokens": 9}
    events.append({"id": "c-1", "object": "chat.completion.chunk", "model": "m-1", "choices": [], "usage": usage})
    return sse(events, done=True)


def anthropic_events(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[dict[str, Any]]:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": []}
    message |= {"stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    index = 0
    for kind, pieces in (("text", texts), ("tool", arguments)):
        if not pieces:
            continue
        block: dict[str, Any] = {"type": "text", "text": ""}
        if kind == "tool":
            block = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for text in pieces:
            delta = {"type": "text_delta", "text": text}
            if kind == "tool":
                delta = {"type": "input_json_delta", "partial_json": text}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
        index += 1
    stop = {"stop_reason": "tool_use" if arguments else "end_turn"}
    return [*events, {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]


def anthropic_stream(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    return sse(anthropic_events(texts, arguments), named=True)


def responses_stream(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    def response(status: str, output: list[Any]) -> dict[str, Any]:
        usage = {"input_tokens": 3, "output_tokens": 9} if output else None
        out = {"id": "r", "object": "response", "model": "m-1", "status": status, "output": output, "error": None}
        return {**out, "usage": usage}

    def event(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", **fields}

    text, argument = "".join(texts), "".join(arguments)
    events = [event("created", response=response("in_progress", []))]
    output: list[Any] = []
    if texts:
        item = {"id": "i0", "type": "message", "role": "assistant", "content": []}
        part = {"type": "output_text", "text": text, "annotations": []}
        at = {"output_index": 0, "content_index": 0}
        events.append(event("output_item.added", output_index=0, item=item))
        events.append(event("content_part.added", **at, part={**part, "text": ""}))
        events += [event("output_text.delta", **at, delta=one) for one in texts]
        events.append(event("output_text.done", **at, text=text))
        events.append(event("content_part.done", **at, part=part))
        output.append({**item, "content": [part]})
        events.append(event("output_item.done", output_index=0, item=output[-1]))
    if arguments:
        index = len(output)
        item = {"id": "i1", "type": "function_call", "name": "look", "call_id": "t1", "arguments": ""}
        events.append(event("output_item.added", output_index=index, item=item))
        events += [event("function_call_arguments.delta", output_index=index, delta=one) for one in arguments]
        events.append(event("function_call_arguments.done", output_index=index, arguments=argument))
        output.append({**item, "arguments": argument})
        events.append(event("output_item.done", output_index=index, item=output[-1]))
    events.append(event("completed", response=response("completed", output)))
    return sse(events, named=True)


def ollama_stream(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    """JSON lines; a tool call comes whole."""
    lines: list[Any] = [
        {"model": "m-1", "message": {"role": "assistant", "content": text}, "done": False} for text in texts
    ]
    if arguments:
        call = {"function": {"name": "look", "arguments": json.loads("".join(arguments))}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        lines.append({"model": "m-1", "message": message, "done": False})
    lines.append({"model": "m-1", "message": {"role": "assistant", "content": ""}, "done": True, "eval_count": 9})
    return [json.dumps(line).encode() + b"\n" for line in lines]


def frame(payload: bytes) -> bytes:
    """A message of an AWS event stream."""
    headers = b"\x0b:event-type\x07\x00\x05chunk"
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return start + struct.pack(">I", zlib.crc32(start))


def bedrock_stream(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    def wrapped(event: dict[str, Any]) -> bytes:
        inner = base64.b64encode(json.dumps(event).encode()).decode()
        return frame(json.dumps({"bytes": inner, "p": "abc"}).encode())

    return [wrapped(event) for event in anthropic_events(texts, arguments)]


def gemini_events(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Answers with a piece each; a call comes whole."""
    parts: list[dict[str, Any]] = [{"text": text} for text in texts]
    if arguments:
        parts.append(
            {"functionCall": {"name": "look", "args": json.loads("".join(arguments))}, "thoughtSignature": "s"}
        )
    events: list[dict[str, Any]] = []
    for part in parts:
        usage = {"promptTokenCount": 3, "candidatesTokenCount": 9, "totalTokenCount": 12}
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
        events.append({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1", "responseId": "r"})
    events[-1]["candidates"][0]["finishReason"] = "STOP"
    return events


def gemini_list(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    """The same as one JSON list, indented as the service does it, an item a piece."""
    items = [json.dumps(event, indent=2).encode() for event in gemini_events(texts, arguments)]
    pieces = [b"[" + items[0], *(b"\n,\r\n" + item for item in items[1:])]
    return [*pieces[:-1], pieces[-1] + b"\n]\n"]


def converse_stream(texts: Sequence[str], arguments: Sequence[str] = ()) -> list[bytes]:
    events: list[dict[str, Any]] = [{"role": "assistant", "p": "abc"}]
    index = 0
    if texts:
        events += [{"contentBlockIndex": 0, "delta": {"text": text}, "p": "ab"} for text in texts]
        events.append({"contentBlockIndex": 0})
        index = 1
    if arguments:
        use = {"toolUseId": "t1", "name": "look"}
        events.append({"contentBlockIndex": index, "start": {"toolUse": use}})
        events += [{"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}} for text in arguments]
        events.append({"contentBlockIndex": index})
    events.append({"stopReason": "tool_use" if arguments else "end_turn"})
    events.append({"usage": {"inputTokens": 3, "outputTokens": 9, "totalTokens": 12}, "metrics": {"latencyMs": 1}})
    return [frame(json.dumps(event).encode()) for event in events]


def streamed(kind: str, texts: Sequence[str], arguments: Sequence[str] = (), coding: str = "") -> Exchange:
    """An exchange with the stream of a dialect; `bedrock` is Anthropic's in AWS frames."""
    maker, media = {
        "openai-chat": (chat_stream, EVENTS),
        "anthropic": (anthropic_stream, EVENTS),
        "openai-responses": (responses_stream, EVENTS),
        "ollama": (ollama_stream, "application/x-ndjson"),
        "gemini": (lambda *given: sse(gemini_events(*given)), EVENTS),
        "gemini list": (gemini_list, "application/json; charset=UTF-8"),
        "converse": (converse_stream, FRAMES),
        "bedrock": (bedrock_stream, FRAMES),
    }[kind]
    asked = {
        "openai-responses": ASKED_RESPONSES,
        "gemini": ASKED_GEMINI,
        "gemini list": ASKED_GEMINI,
        "converse": ASKED_CONVERSE,
        "bedrock": {"anthropic_version": "v", "messages": ASKED["messages"]},
    }.get(kind, ASKED)
    return answered(maker(texts, arguments), media, url=URLS[kind], asked=asked, coding=coding)
