"""Small tapes for the codec's tests: honest ones from records, and hostile ones from JSON objects or raw lines."""

import copy
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
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


def flipped(data: bytes, every: int = 1) -> Iterator[tuple[int, int, list[Entry], Ending | TapeFormatError]]:
    """Flip one bit in `every` of a tape, at random, but each in its first 20 bytes and its last 600.

    Yields the byte, the bit, the records that are given out and what came instead of the rest. What is before the bit
    is read once, and not for every bit after it.
    """
    decoder, rng, before = TapeDecoder("t"), random.Random(every), list[Entry]()
    for at in range(len(data)):
        for bit in range(8):
            if rng.randrange(every) and 20 <= at < len(data) - 600:
                continue
            found, ending = _rest_of(_state_of(decoder), bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            yield at, bit, before + found, ending
        before += decoder.feed(data[at : at + 1])


def _state_of(decoder: TapeDecoder) -> TapeDecoder:
    """A decoder that goes on from where `decoder` is."""
    other = copy.copy(decoder)
    other._inflater = copy.copy(decoder._inflater)
    other._inflater._stream = decoder._inflater._stream.copy()
    # A deep copy of bodies would cost more than all the rest, and no record is put in twice.
    other._bodies = copy.copy(decoder._bodies)
    other._bodies._parts = dict(decoder._bodies._parts)
    other._bodies._depth = dict(decoder._bodies._depth)
    other._line = bytearray(decoder._line)
    other._file = decoder._file.copy()
    other._before = decoder._before.copy()
    return other


def _rest_of(decoder: TapeDecoder, data: bytes) -> tuple[list[Entry], Ending | TapeFormatError]:
    found, at = list[Entry](), 0
    try:
        for size in (1, 63, 1000, len(data)):  # damage is mostly found at once
            for entry in decoder.feed(data[at : at + size]):
                found.append(entry)
            at += size
        return found, decoder.finish()
    except TapeFormatError as error:
        return found, error
