"""Runs made in memory for tests of diff: requests to a model and to other services, lane by lane."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import agentruns

from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.records import Exit, Head, Headers, Lane, Record, Request

TRACE = "ab" * 32
MODEL = "https://api.openai.com/v1/chat/completions"


@dataclass(frozen=True)
class Ask:
    """One exchange of a run: what `lane` asked, and what came back."""

    lane: str | None
    url: str
    asked: Any = None
    answer: bytes = b""
    status: int = 200
    headers: Headers = ()
    stream: tuple[bytes, ...] = ()


def get(lane: str | None, path: str, answer: str = "ok", *, status: int = 200, headers: Headers = ()) -> Ask:
    """A GET of a service."""
    return Ask(lane, f"https://service.test/{path}", None, answer.encode(), status, headers)


def say(lane: str | None, *texts: str, answer: str = "Yes.", call_id: str = "c1", **parameters: Any) -> Ask:
    """A chat completion about these user messages."""
    messages = [{"role": "user", "content": text} for text in texts]
    asked = {"model": "gpt-4o", "messages": messages} | parameters
    back = {
        "id": f"chatcmpl-{call_id}",
        "created": 1_700_000_000 + len(call_id),
        "model": "gpt-4o-2024",
        "choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}],
    }
    return Ask(lane, MODEL, asked, json.dumps(back).encode(), headers=(agentruns.JSON_TYPE,))


def streamed(lane: str | None, text: str, *pieces: str, call_id: str = "c1") -> Ask:
    """A chat completion that streams its answer in these pieces."""
    asked = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": text}]}
    deltas = [{"id": call_id, "choices": [{"delta": {"role": "assistant", "content": piece}}]} for piece in pieces]
    events = agentruns.sse(*deltas, {"id": call_id, "choices": [{"delta": {}, "finish_reason": "stop"}]})
    return Ask(lane, MODEL, asked, headers=((b"Content-Type", b"text/event-stream"),), stream=tuple(events))


def records(asks: Iterable[Ask], *, first: Sequence[Record] = (), code: int | None = 0) -> list[Record]:
    """The records of a run."""
    out: list[Record] = list(first)
    turns: Counter[str | None] = Counter()
    for ask in asks:
        chunks = ask.stream or ((ask.answer,) if ask.answer else ())
        method = "GET" if ask.asked is None else "POST"
        request, *rest = agentruns.exchange(
            len(out) + 1,
            ask.url,
            method=method,
            asked=ask.asked,
            status=ask.status,
            headers=ask.headers,
            chunks=chunks,
            lane=ask.lane,
        )
        assert isinstance(request, Request)
        out += [replace(request, n=turns[ask.lane]) if ask.lane else request, *rest]
        turns[ask.lane] += 1
    if code is not None:
        out.append(Exit(t=10**12, code=code, duration=10**9))
    return out


def run(*asks: Ask, names: dict[str, str] | None = None, code: int = 0, head: Head = agentruns.HEAD) -> Tape:
    """The tape of a run, read back."""
    lanes: list[Record] = [Lane(t=0, id=lane, what="thread", name=name) for lane, name in (names or {}).items()]
    return read(records(asks, first=lanes, code=code), head)


def read(made: Iterable[Record], head: Head = agentruns.HEAD) -> Tape:
    """These records, through a file's bytes."""
    return assemble(TapeDecoder("tape").feed(agentruns.tape_bytes(made, head, trace=TRACE)))


def write(path: Path, *asks: Ask, names: dict[str, str] | None = None, code: int = 0) -> Path:
    """A tape as a file."""
    lanes: list[Record] = [Lane(t=0, id=lane, what="thread", name=name) for lane, name in (names or {}).items()]
    return agentruns.write_tape(path, records(asks, first=lanes, code=code))
