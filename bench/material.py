"""The tapes that the benchmark replays, written once a run."""

import random
from collections.abc import Iterable
from pathlib import Path

from bench.conversation import HOST, PATH, Growth, conversation
from bench.stream import events
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.records import Chunks, End, Framing, Head, Headers, Request, Response

_HEAD = Head(started_at="2026-01-01T00:00:00.000000Z", by="bench", must=("like",), window=WINDOW)  # as recorded
_BIG = 200_000
_JSON = (b"content-type", b"application/json")
_EVENTS = ((b"content-type", b"text/event-stream"), (b"transfer-encoding", b"chunked"))


def chat_tape(path: Path, conversations: int, turns: int, growth: Growth | None = None) -> Path:
    """A tape of conversations side by side, as agents in parallel leave it: turn by turn."""
    tape = TapeWriter(path, _HEAD)
    running = [conversation(seed, growth or Growth(turns)) for seed in range(conversations)]
    for side_by_side in zip(*running, strict=True):
        for turn in side_by_side:
            headers = (_JSON, (b"content-length", b"%d" % len(turn.answer)))
            _add(tape, turn.request, headers, "length", [(0, turn.answer)])
    tape.seal(trace="", outcome="complete")
    return path


def stream_tape(path: Path, streams: int, count: int) -> Path:
    """A tape of `streams` event streams of `count` events; the request of stream n is `stream_request(n)`."""
    tape = TapeWriter(path, _HEAD)
    for seed in range(streams):
        _add(tape, stream_request(seed), _EVENTS, "chunked", [(e.due, e.data) for e in events(seed, count)])
    tape.seal(trace="", outcome="complete")
    return path


def big_tape(path: Path, size: int, seed: str | None = None) -> Path:
    """A tape of at least `size` bytes of lines: a small conversation, then bodies of 200 KB that share nothing.

    With a `seed` it is one that was recorded with the shim.
    """
    tape = TapeWriter(path, Head(started_at=_HEAD.started_at, by="bench", seed=seed))
    (turn,) = conversation(0, Growth(1))
    headers = (_JSON, (b"content-length", b"%d" % len(turn.answer)))
    _add(tape, turn.request, headers, "length", [(0, turn.answer)])
    text = b"".join(turn.request for turn in conversation(1, Growth(40, 200_000, 4_000_000)))
    rng, written = random.Random(0), 0
    while written < size:
        at = rng.randrange(len(text) - _BIG)
        body = b'{"n":%d,"text":"%b"}' % (written, text[at : at + _BIG].replace(b'"', b"'").replace(b"\\", b"/"))
        _add(tape, body, headers, "length", [(0, turn.answer)])
        written += len(body)
    tape.seal(trace="", outcome="complete")
    return path


def stream_request(seed: int) -> bytes:
    """The body of the request for stream number `seed`."""
    return b'{"stream":true,"n":%d}' % seed


def _add(tape: TapeWriter, body: bytes, headers: Headers, framing: Framing, parts: Iterable[tuple[int, bytes]]) -> None:
    url = f"https://{HOST}{PATH}".encode()
    of = tape.add(Request(t=0, method=b"POST", url=url, headers=(_JSON,), body=body))
    tape.add(Response(t=0, of=of, status=200, reason=b"OK", headers=headers, framing=framing))
    parts = tuple(parts)
    tape.add(Chunks(t=0, of=of, parts=parts))
    tape.add(End(t=max(due for due, _ in parts), of=of, how="complete"))
    tape.commit()
