"""Long runs made up for tests and measurements of what shows tapes: many lanes, streams, meetings and readings."""

import json
from collections.abc import Iterator
from pathlib import Path

import agentruns

from tapeproxy.tapes.records import Chunks, Clock, Edge, End, Exit, Head, Lane, Record, Request, Response

MS = 1_000_000
MODEL = b"https://api.openai.com/v1/chat/completions"


def long_run(exchanges: int, lanes: int) -> Iterator[Record]:
    """The records of a run: a lane `m` that began the others, which ask in turn, each after the one before has had its
    answer. Every fourth exchange is no call of a model, every fiftieth fails, every eighth streams."""
    ids = ["m", *(f"m/t{at}" for at in range(lanes - 1))]
    turns, meetings = dict.fromkeys(ids, 0), dict.fromkeys(ids, 0)
    index = 1
    for lane in ids[1:]:
        yield Lane(t=MS, id=lane, what="thread", name=f"worker {lane[3:]}", origin=("m", 0, 0))
        index += 1
    for number in range(exchanges):
        lane, start = ids[number % lanes], number * 3 * MS
        if number % lanes and number % 7 == 0:
            other = ids[number % lanes - 1]
            yield Edge(
                t=start, what="join", on=other, lane=lane, n=meetings[lane], asked=turns[lane], at=(turns[other], 0)
            )
            meetings[lane] += 1
            index += 1
        yield Clock(t=start, lane=lane, n=turns[lane], ns=start)
        index += 1
        yield from _exchange(index, number, lane, turns[lane], start)
        index += 4
        turns[lane] += 1
    yield Exit(t=exchanges * 3 * MS, code=0, duration=exchanges * 3 * MS)


def _exchange(index: int, number: int, lane: str, n: int, start: int) -> Iterator[Record]:
    is_call, fails, streams = number % 4 != 3, number % 50 == 49, number % 8 == 0
    said = f"Answer {number}: " + "some words that a model says, one after another. " * 4
    if is_call:
        asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": f"Question {number}, of {lane}."}]}
        answer = {"model": "gpt-4o-mini-2024", "choices": [{"message": {"role": "assistant", "content": said}}]}
        answer["usage"] = {"prompt_tokens": 12, "completion_tokens": 40}
        kind = (b"Content-Type", b"text/event-stream" if streams else b"application/json")
        deltas = [{"choices": [{"delta": {"content": said[at::5]}}]} for at in range(5)]
        chunks = agentruns.sse(*deltas) if streams else [json.dumps(answer).encode()]
    else:
        asked, kind = None, (b"Content-Type", b"text/plain")
        chunks = [said.encode()]
    body = b"" if asked is None else json.dumps(asked | ({"stream": True} if streams else {})).encode()
    url = MODEL if is_call else b"https://service.test/search?q=%d" % number
    headers = (agentruns.JSON_TYPE,) if is_call else ()
    method = b"POST" if is_call else b"GET"
    yield Request(t=start, method=method, url=url, headers=headers, body=body, lane=lane, n=n)
    status = 503 if fails else 200
    yield Response(t=start + 5 * MS, of=index, status=status, reason=b"OK", headers=(kind,), framing="chunked")
    yield Chunks(t=start + 10 * MS, of=index, parts=tuple((at * 3 * MS, one) for at, one in enumerate(chunks)))
    yield End(t=start + 40 * MS, of=index, how="complete")


def write_long(path: Path, exchanges: int, lanes: int) -> Path:
    """Such a run as a sealed tape."""
    head = Head(
        by="tapeproxy 0.1.0", started_at="2026-01-02T03:04:05.000000Z", argv=("python", "long.py"), rules={"edges": 1}
    )
    path.write_bytes(agentruns.tape_bytes(long_run(exchanges, lanes), head))
    return path
