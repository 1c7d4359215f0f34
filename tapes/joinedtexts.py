"""A secret that is split over the events of a stream: found in what their texts add up to, replaced piece by piece.

Knows events and JSON, not secrets: the caller says what to replace in a text.
"""

import re
from collections.abc import Callable, Iterator

import orjson

from tapeproxy.tapes.jsonlists import whole_items
from tapeproxy.tapes.jsonstrings import StringAt, strings_in
from tapeproxy.tapes.layers import CONSTANT, View, load, stream_of
from tapeproxy.tapes.splicing import Edit, settled, splice

_DATA = re.compile(rb"^data:[ ]?(?P<data>.*)$", re.MULTILINE)
_LINE = re.compile(rb"^(?P<data>\{.*)$", re.MULTILINE)
_LAST = re.compile(r"([^.\[\]]*)(?:\[\d+\])*$")


def joined_edits(text: bytes, kind: bytes, edits: Callable[[bytes], list[Edit]]) -> list[Edit]:
    """What to replace in a body of the content type `kind` (lower case), given what `edits` finds in joined texts."""
    streams: dict[tuple[object, ...], list[StringAt]] = {}
    for key, found in _strings(text, kind):
        streams.setdefault(key, []).append(found)
    out: list[Edit] = []
    for parts in streams.values():
        if len(parts) < 2:
            continue
        old = [part.value.encode(errors="surrogatepass") for part in parts]
        new = splice(old, edits(b"".join(old)))
        out += (
            Edit(part.start, part.end, orjson.dumps(now.decode(errors="replace"))[1:-1])
            for part, was, now in zip(parts, old, new, strict=True)
            if was != now
        )
    return settled(out)


def _strings(text: bytes, kind: bytes) -> Iterator[tuple[tuple[object, ...], StringAt]]:
    events = [*_events(text, kind)]
    if len(events) < 2:
        return
    for start, end in events:
        data = text[start:end].removesuffix(b"\r")
        value = load(data)
        if not isinstance(value, dict | list):
            continue
        for one in strings_in(data):
            name = _LAST.search(one.path)
            called = name[1] if name else ""
            if called not in CONSTANT:
                key = stream_of(View(one.path, called, b""), value)
                yield key, one._replace(start=one.start + start, end=one.end + start)


def _events(text: bytes, kind: bytes) -> Iterator[tuple[int, int]]:
    """Where the events stand: of server-sent ones their data, or lines of JSON, or the items of Gemini's list."""
    if text.lstrip().startswith(b"[") and b'"candidates"' in text:
        yield from whole_items(text)
        return
    if b"\n" not in text:  # most bodies: one event is no stream
        return
    pattern = _DATA if b"event-stream" in kind or text.startswith((b"data:", b"event:", b"id:", b":")) else _LINE
    yield from (match.span("data") for match in pattern.finditer(text))
