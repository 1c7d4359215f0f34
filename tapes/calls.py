"""From an exchange to the LLM call it is, if it is one; knows how bodies are framed, the dialects know the rest.

Whatever the bytes are, the answer is a Call or None, never an exception: a tape holds what the world sent.
"""

import base64
import binascii
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from tapeproxy.tapes.codings import decode, header
from tapeproxy.tapes.conversation import Answer, Answered, Asked, Call, Dialect, Message
from tapeproxy.tapes.dialects import anthropic, converse, gemini, ollama, openai_chat, openai_responses
from tapeproxy.tapes.dialects.shapes import error_of, items_of, mapping_of, name_of, text_of
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.jsonlists import whole_items
from tapeproxy.tapes.records import Headers, Json
from tapeproxy.tapes.sse import parse_events, split_json_lines

_DIALECTS = (
    *(openai_chat.DIALECT, anthropic.DIALECT, openai_responses.DIALECT),
    *(gemini.DIALECT, converse.DIALECT, ollama.DIALECT),
)
_PRELUDE = struct.Struct(">III")


def read_call(exchange: Exchange) -> Call | None:
    """The LLM call that `exchange` carries, as far as it came; None when it is something else."""
    found = read_asked(exchange)
    if found is None:
        return None
    dialect, asked = found
    answered, streamed = read_answered(exchange, dialect)
    return Call(
        dialect.name,
        answered.model or asked.model,
        asked.messages,
        answered.message,
        answered.stop,
        answered.tokens_in,
        answered.tokens_out,
        answered.error,
        streamed,
        answered.tokens_cached,
        answered.tokens_written,
    )


def dialect_of(url: bytes, headers: Headers, body: bytes) -> str | None:
    """The name of the dialect that a request to a model is in; None when it is something else."""
    found = _read_request(url, headers, body)
    return None if found is None else found[0].name


def find_dialect(exchange: Exchange) -> Dialect | None:
    """The dialect of the LLM call that `exchange` carries; None when it is something else."""
    found = read_asked(exchange)
    return None if found is None else found[0]


def read_asked(exchange: Exchange) -> tuple[Dialect, Asked] | None:
    """The dialect of the LLM call that `exchange` carries, and what was asked; None when it is something else."""
    return _read_request(exchange.request.url, exchange.request.headers, exchange.request_body)


def read_answered(exchange: Exchange, dialect: Dialect) -> tuple[Answered, bool]:
    """What came back, read as `dialect`, and whether it was streamed."""
    answer = read_answer(exchange)
    answered = dialect.read_answer(answer)
    return replace(answered, error=answered.error or _read_failure(answer)), answer.streamed


def read_messages(url: bytes, headers: Headers, body: bytes) -> tuple[Message, ...]:
    """The messages of a request to a model, system prompt and all; none when it is something else."""
    found = _read_request(url, headers, body)
    return () if found is None else found[1].messages


def read_answer(exchange: Exchange) -> Answer:
    """The JSON objects of the response body: of SSE, JSON lines, a list, an AWS event stream, or one plain object."""
    if exchange.response is None:
        return Answer()
    headers, status = exchange.response.headers, exchange.response.status
    body = decode(exchange.response_body, headers).data
    kind = header(headers, b"content-type").lower()
    if b"vnd.amazon.eventstream" in kind:
        return Answer(tuple(_objects(aws_payloads(body))), True, status)
    whole = None if b"event-stream" in kind else _load(body)
    if isinstance(whole, dict) and b"ndjson" not in kind:
        return Answer((whole,), False, status)
    if isinstance(whole, list):
        return Answer(tuple(items_of(whole)), True, status)
    if body.lstrip().startswith(b"[") and b"event-stream" not in kind:
        return Answer(tuple(_objects(body[start:end] for start, end in whole_items(body))), True, status)
    # Some recorders lose the content type, so the first byte decides: no SSE field begins with a brace.
    if body.lstrip().startswith(b"{"):
        return Answer(tuple(_objects(split_json_lines(body))), True, status)
    events = (event.data.encode() for event in parse_events(body))
    return Answer(tuple(_objects(events)), True, status)


def _read_request(url: bytes, headers: Headers, body: bytes) -> tuple[Dialect, Asked] | None:
    path = url.decode("latin-1").partition("?")[0].rstrip("/")
    request = _load(decode(body, headers).data)
    if not isinstance(request, dict):
        return None
    readings = ((dialect, dialect.read_request(path, request)) for dialect in _DIALECTS)
    return next(((dialect, asked) for dialect, asked in readings if asked is not None), None)


def _read_failure(answer: Answer) -> str | None:
    """What an error response says, in shapes that no dialect owns."""
    if answer.status is None or answer.status < 400:
        return None
    for obj in answer.objects:
        for said in (error_of(obj), name_of(obj.get("message")), name_of(obj.get("detail"))):
            if said:
                return said
    return f"HTTP status {answer.status}"


def _objects(texts: Iterator[bytes] | list[bytes]) -> Iterator[Json]:
    """The texts that are JSON objects; `[DONE]` and what was cut are none."""
    return (value for text in texts if isinstance(value := _load(text), dict))


def _load(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def aws_payloads(body: bytes) -> Iterator[bytes]:
    """The events inside an AWS event stream, as Bedrock wraps them: `{"bytes": base64}` in each message.

    A message is total length, headers' length and a CRC (4 bytes each), headers, payload, a CRC.
    https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html
    """
    at = 0
    while len(body) - at >= _PRELUDE.size:
        total, headers, _ = _PRELUDE.unpack_from(body, at)
        if total < _PRELUDE.size + headers + 4 or at + total > len(body):
            return
        payload = body[at + _PRELUDE.size + headers : at + total - 4]
        inner = text_of(mapping_of(_load(payload)).get("bytes"))
        try:
            yield base64.b64decode(inner, validate=True) if inner else payload
        except binascii.Error:
            yield payload
        at += total
