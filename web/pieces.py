"""What came of an answer, chunk by chunk: its text, the events that end in it, the words that it adds. Pure."""

import base64
import codecs
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from tapeproxy.tapes.codings import decode_chunks, header, looks_like_text
from tapeproxy.tapes.eventstreams import event_type
from tapeproxy.tapes.eventtexts import read_events
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Headers, Json
from tapeproxy.tapes.saying import words_by_chunk

_BYTES: Final = 512
"""Bytes of a chunk without text that are shown."""


def pieces(exchange: Exchange, *, words: bool = False) -> Iterator[Json]:
    """The chunks of an answer: `at_ns`, `size` on the tape, and `text`, or the first bytes as `b64` where it is none.

    Of a compressed body a chunk has the text that can be told once it is there. `events`: of an AWS event stream, the
    name and the text of each message that ends in this chunk. With `words`, `said`: what it adds to the words of a
    model.
    """
    if exchange.response is None:
        return
    headers = exchange.response.headers
    _, plain = decode_chunks([chunk.data for chunk in exchange.chunks], headers)
    said = words_by_chunk(exchange, plain) if words else [""] * len(plain)
    events = _framed(plain, headers)
    for at, (chunk, shown) in enumerate(zip(exchange.chunks, _shown(plain), strict=True)):
        about: Json = {"at_ns": chunk.t, "size": len(chunk.data)} | shown
        if events is not None:
            about["events"] = events[at]
        yield about | {"said": said[at]} if said[at] else about


def _shown(plain: Sequence[bytes]) -> Iterator[Json]:
    """Each chunk as text. A character that a chunk cuts comes with its last byte."""
    reader = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        texts = [reader.decode(data) for data in plain]
        reader.decode(b"", final=True)
    except UnicodeDecodeError:
        yield from (
            {"text": data.decode(errors="replace")}
            if looks_like_text(data)
            else {"b64": base64.b64encode(data[:_BYTES]).decode()}
            for data in plain
        )
        return
    yield from ({"text": text} for text in texts)


def _framed(plain: Sequence[bytes], headers: Headers) -> list[list[Json]] | None:
    """Of each chunk, the messages of an AWS event stream that end in it; None of what is no such stream."""
    if b"vnd.amazon.eventstream" not in header(headers, b"content-type").lower():
        return None
    body, ends = b"".join(plain), [*accumulate(map(len, plain))]
    events = read_events(body, headers)
    out: list[list[Json]] = [[] for _ in plain]
    for event in [] if events is None else events.events:
        name = event_type(body[event.start : event.end])
        out[bisect_left(ends, event.end)].append({"name": name, "data": event.text.decode(errors="replace")})
    return out
