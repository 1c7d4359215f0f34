"""Small tapes for the codec's tests: honest ones from records, and hostile ones from JSON objects or raw lines."""

import gzip
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from tapeproxy.tapes.chain import START, close_line
from tapeproxy.tapes.decoder import Ending, Entry, Limits, TapeDecoder
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.records import Chunks, End, Exit, Head, Like, Note, Record, Request, Response

HEAD = Head(
    by="tapeproxy 0.1.0",
    started_at="2026-01-02T03:04:05.000006Z",
    argv=("python", "agent.py"),
    must=("like", "ref"),
)
RECORDS: tuple[Record, ...] = (
    Request(t=1, method=b"POST", url=b"https://x.example/y", headers=((b"a", b"\xe9"),), body=b"hello, world"),
    Response(t=2, of=1, status=200, reason=b"OK", framing="chunked", headers=((b"b", b"c"),)),
    Chunks(t=3, of=1, parts=((0, b"one"), (None, b"\xff\x00"))),
    End(t=4, of=1, how="complete"),
    Request(t=5, method=b"POST", url=b"https://x.example/y", body=Like(1, 7, b"w\xff", 3)),
    Note(t=6, what="bypass", text="two\u2028lines", data={"port": 1}),
    Exit(t=7, code=0, duration=7),
)


def written(
    records: Iterable[Record] = RECORDS, head: Head = HEAD, *, seal: bool = True, commits: bool = True
) -> bytes:
    """A tape file as the recorder writes it: `commits` after every record, or only at the end."""
    encoder = TapeEncoder(head)
    out = [encoder.flush()] if commits else []
    for record in records:
        encoder.add(record)
        out += [encoder.flush()] if commits else []
    out.append(encoder.seal(t=9, trace="00", outcome="exit") if seal else encoder.flush())
    return b"".join(out)


def chained(*objects: dict[str, Any] | bytes) -> list[bytes]:
    """Lines with a right chain, from objects (which get `i` unless they have it) or from raw JSON bytes."""
    lines, last = [], START
    for index, obj in enumerate(objects):
        raw = obj if isinstance(obj, bytes) else orjson.dumps({"k": obj.get("k"), "i": index} | obj)
        line, last = close_line(last, raw)
        lines.append(line)
    return lines


def zipped(*lines: bytes) -> bytes:
    """A file of one gzip member."""
    return gzip.compress(b"".join(lines), 1, mtime=0)


def read(data: bytes, step: int = 0, limits: Limits | None = None) -> tuple[list[Entry], Ending]:
    """Decode in pieces of `step` bytes (0: whole). Raises TapeFormatError."""
    decoder = TapeDecoder("t", limits)
    entries = [entry for piece in pieces(data, step) for entry in decoder.feed(piece)]
    return entries, decoder.finish()


def read_what_can_be(data: bytes, step: int = 0) -> tuple[list[Entry], Ending | TapeFormatError]:
    """Decode; every record given out, and the ending or the error that came instead."""
    decoder, entries = TapeDecoder("t"), []
    try:
        for piece in pieces(data, step):
            for entry in decoder.feed(piece):
                entries.append(entry)
        return entries, decoder.finish()
    except TapeFormatError as error:
        return entries, error


def pieces(data: bytes, step: int) -> Sequence[bytes]:
    return [data[at : at + step] for at in range(0, len(data), step)] if step else [data]
