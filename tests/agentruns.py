"""Tapes made in memory for tests of what reads them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.records import Chunks, End, Exit, Head, Headers, How, Note, Record, Request, Response
from tapeproxy.tapes.trace import TraceHasher

MS = 1_000_000
HEAD = Head(
    by="tapeproxy 0.1.0", started_at="2026-01-02T03:04:05.000000Z", argv=("python", "agent.py", "a b"), cwd="/home/ada"
)
JSON_TYPE = (b"Content-Type", b"application/json")


def exchange(
    index: int,
    url: str,
    *,
    method: str = "GET",
    asked: Any = None,
    status: int | None = 200,
    headers: Headers = (),
    chunks: Iterable[bytes] = (),
    how: How | None = "complete",
    error: str | None = None,
    lane: str | None = None,
) -> list[Record]:
    """The records of an exchange whose request is record `index`; its chunks come 10, 20, 30 … ms after the request."""
    start = index * 100 * MS
    body = b"" if asked is None else asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    sent = (*([JSON_TYPE] if body else []), (b"X-Test", b"1"))
    records: list[Record] = [
        Request(t=start, method=method.encode(), url=url.encode(), headers=sent, body=body, lane=lane)
    ]
    if status is not None:
        records.append(
            Response(t=start + 5 * MS, of=index, status=status, reason=b"OK", headers=headers, framing="chunked")
        )
    at = 5 * MS
    for at, chunk in enumerate(chunks, 1):
        at *= 10 * MS
        records.append(Chunks(t=start + at, of=index, parts=((0, chunk),)))
    if how is not None:
        records.append(End(t=start + at + MS, of=index, how=how, error=error))
    return records


def sse(*objects: Any) -> list[bytes]:
    """Each object as a chunk that is one SSE event, and the sentinel."""
    return [*(b"data: " + json.dumps(item).encode() + b"\n\n" for item in objects), b"data: [DONE]\n\n"]


def chat(index: int, *, lane: str | None = None) -> list[Record]:
    """A streamed OpenAI chat completion, a tool loop's second turn."""
    asked = {
        "model": "gpt-4o",
        "stream": True,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?\nIn Paris."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"},
        ],
    }
    answer = sse(
        {"model": "gpt-4o-2024", "choices": [{"delta": {"role": "assistant", "content": "18 "}}]},
        {"choices": [{"delta": {"content": "degrees."}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 5}},
    )
    return exchange(
        index,
        "https://api.openai.com/v1/chat/completions",
        method="POST",
        asked=asked,
        headers=((b"Content-Type", b"text/event-stream"),),
        chunks=answer,
        lane=lane,
    )


def sample(lane: str | None = None) -> list[Record]:
    """A run: a streamed LLM call, a JSON API, a 404, a connection refused; then the agent exits with 3."""
    records: list[Record] = []
    records += chat(1, lane=lane)
    records += exchange(
        len(records) + 1,
        "http://weather.test:8080/now?city=Paris",
        headers=(JSON_TYPE,),
        chunks=[b'{"degrees":18.00,', b'"sky":"clear"}'],
    )
    records += exchange(len(records) + 1, "http://weather.test:8080/missing", status=404, chunks=[b"\x00\xff" * 200])
    records += exchange(
        len(records) + 1, "https://down.test/", status=None, how="connect-error", error="connection refused"
    )
    records.append(Note(t=7, what="tunnel-untaped", text="a tunnel passed untaped"))
    records.append(Exit(t=900 * MS, code=3, duration=1_500 * MS))
    return records


def tape_bytes(
    records: Iterable[Record],
    head: Head = HEAD,
    *,
    sealed: bool = True,
    outcome: str = "exited",
    trace: str = "",
    messages: str = "",
) -> bytes:
    """A tape of these records as a file's bytes; `trace` and `messages` instead of the right hashes."""
    records = list(records)
    encoder = TapeEncoder(head)
    for record in records:
        encoder.add(record)
    if not sealed:
        return encoder.flush()
    hasher = TraceHasher()
    if not trace:
        for index, record in enumerate((head, *records)):
            hasher.feed(index, record)
        trace = hasher.hexdigest()
    return encoder.flush() + encoder.seal(
        t=10**9, trace=trace, outcome=outcome, messages=messages or hasher.messages(), uploads=hasher.uploads()
    )


def write_tape(path: Path, records: Iterable[Record], head: Head = HEAD, *, sealed: bool = True) -> Path:
    """Write a tape; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tape_bytes(records, head, sealed=sealed))
    return path
