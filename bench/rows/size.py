"""The size of a tape: a conversation that grows with every turn, against its gzipped HAR, and whether it is linear."""

import gzip
import json
import time
from collections.abc import Iterator

from bench.conversation import HOST, PATH, Growth, conversation
from bench.figures import Bar, Bench, Line, Sample, Skipped, ratio
from bench.material import chat_tape
from tapeproxy.tapes.likes import WINDOW, Likes
from tapeproxy.tapes.records import Request

_PER_TURN = 1800
"""Bytes by which the requests grow: from 20 KB to 200 KB in 100 turns."""


def size(bench: Bench) -> Iterator[Line | Skipped]:
    """Nothing here depends on the machine but the last line."""
    turns = 10 if bench.quick else 100
    ours = Sample("tapeproxy", "KB", [_tape_kb(bench, turns)])
    what = f"size of a {turns}-turn conversation's tape, against its gzipped HAR"
    yield ratio(what, ours, Sample("gzip -6", "KB", [_har_kb(turns)]), Bar(0.1, "at most"))
    twice = Sample(f"tapeproxy, {2 * turns} turns", "KB", [_tape_kb(bench, 2 * turns)])
    yield ratio("the same conversation twice as long: 2 is linear", twice, ours, Bar(2.2, "at most"))
    costs = Sample("tapeproxy", "µs", _costs(turns))
    yield Line("record: to find what a request body shares", costs, None, costs.median, "µs", Bar(100, "at most"))


def _tape_kb(bench: Bench, turns: int) -> float:
    path = chat_tape(bench.folder / f"{turns}.tape.jsonl.gz", 1, turns, _growth(turns))
    return path.stat().st_size / 1000


def _har_kb(turns: int) -> float:
    return len(gzip.compress(_har(turns), 6)) / 1000


def _har(turns: int) -> bytes:
    """A HAR with nothing in it but what it needs."""
    entries = [
        {
            "request": {"method": "POST", "url": f"https://{HOST}{PATH}", "postData": {"text": turn.request.decode()}},
            "response": {"status": 200, "content": {"text": turn.answer.decode()}},
        }
        for turn in conversation(0, _growth(turns))
    ]
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def _costs(turns: int) -> list[float]:
    likes, costs = Likes(WINDOW), []
    for index, turn in enumerate(conversation(0, _growth(turns))):
        request = Request(t=0, method=b"POST", url=b"u", body=turn.request)
        began = time.perf_counter()
        plan = likes.plan(request)
        costs.append((time.perf_counter() - began) * 1e6)
        likes.keep(index, request, plan)
    return costs


def _growth(turns: int) -> Growth:
    return Growth(turns, 20_000, 20_000 + turns * _PER_TURN)
