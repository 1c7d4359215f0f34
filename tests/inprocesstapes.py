"""A small tape of some APIs, for the tests of replays within this interpreter."""

from pathlib import Path
from typing import Any

import agentruns

from tapeproxy.tapes.records import Head, Record

HEAD = Head(started_at="2026-01-01T00:00:00Z", secrets=("TEST_API_KEY",))
JSON = ((b"content-type", b"application/json"),)
COMPLETION = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"hello from the tape"}}]}'
)
ASKED = {"messages": [{"role": "user", "content": "hi"}], "model": "m"}
EVENTS = [b'data: {"n":%d}\n\n' % n for n in range(3)]
URLS = ["https://api.test/one", "https://api.test/two", "http://plain.test:8080/"]


def write_tape(path: Path, *exchanges: tuple[str, dict[str, Any]]) -> Path:
    """A sealed tape; of each exchange the URL and what else `agentruns.exchange` takes."""
    records: list[Record] = []
    for url, options in exchanges:
        records += agentruns.exchange(len(records) + 1, url, **options)
    return agentruns.write_tape(path, records, HEAD)


def gets(folder: Path, *paths: str) -> Path:
    """A tape of https://api.test and these paths, each answered with its own name."""
    return write_tape(
        folder / "gets.tape.jsonl.gz",
        *((f"https://api.test{path}", {"chunks": [path.encode()]}) for path in paths),
    )


def api_tape(folder: Path) -> Path:
    """The three URLS, a stream, a completion of a chat, and an answer that was reset."""
    return write_tape(
        folder / "api.tape.jsonl.gz",
        *((url, {"headers": JSON, "chunks": [b'{"n":%d}' % n]}) for n, url in enumerate(URLS)),
        ("https://api.test/events", {"headers": ((b"content-type", b"text/event-stream"),), "chunks": EVENTS}),
        (
            "https://llm.test/v1/chat/completions",
            {"method": "POST", "asked": ASKED, "headers": JSON, "chunks": [COMPLETION]},
        ),
    )
