"""The texts of a stream's events and where they stand in its bytes, so that one can be changed and no other.

Server-sent events, JSON lines, AWS event streams and lists whose items come one by one; knows their framing, not what
an event means. Events count from 0, in the order and by the rules of `sse.parse_events`, `split_json_lines`,
`aws_payloads` and `whole_items`; those that are no JSON, as `[DONE]`, count too.
"""

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from tapeproxy.tapes.codings import header
from tapeproxy.tapes.eventstreams import messages
from tapeproxy.tapes.jsonlists import whole_items
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.splicing import Edit

_LINE: Final = re.compile(rb"[^\r\n]*(\r\n|\r|\n|\Z)")
_BREAK: Final = re.compile(rb"\r\n|\r|\n")
_BOM: Final = b"\xef\xbb\xbf"
_PRELUDE: Final = struct.Struct(">II")
_CRC: Final = struct.Struct(">I")
_INNER: Final = re.compile(rb'("bytes"\s*:\s*")([A-Za-z0-9+/]*={0,2})(")')


@dataclass(frozen=True, slots=True)
class EventText:
    """An event is `body[start:end]`, its `text` is what it carries. `parts`: where that stands, line by line."""

    start: int
    end: int
    text: bytes
    parts: tuple[tuple[int, int], ...] = ()

    def replaced(self, body: bytes, new: bytes) -> list[Edit]:
        """The edits that give the event another text."""
        if not self.parts:
            return [_narrowed(body, Edit(self.start, self.end, _reframed(body[self.start : self.end], new)))]
        (start, end), *more = self.parts
        data = b"\ndata: ".join(_BREAK.split(new))
        if start == end and body[:start].endswith(b"data"):  # a field without a colon
            data = b": " + data
        # Of a text in several lines the first takes all; the others go.
        gone = [Edit(*_line_before(body, *part), b"") for part in more]
        return [_narrowed(body, Edit(start, end, data)), *gone]


@dataclass(frozen=True, slots=True)
class EventTexts:
    """The events of a body. `form`: how they are framed, `sse`, JSON `lines`, a `list` of JSON, or AWS's `frames`."""

    body: bytes
    events: Sequence[EventText]
    form: Literal["sse", "lines", "list", "frames"] = "sse"

    def edits(self, changed: Mapping[int, bytes | None]) -> list[Edit]:
        """The edits of the body that give events other texts, or take them out (None)."""
        out: list[Edit] = []
        for number, new in sorted(changed.items()):
            event = self.events[number]
            if new is None:
                out.append(Edit(*self._place(number, changed), b""))
            elif new != event.text:
                whole = Edit(event.start, event.end, new)
                out += [_narrowed(self.body, whole)] if self.form == "list" else event.replaced(self.body, new)
        return out

    def _place(self, number: int, changed: Mapping[int, bytes | None]) -> tuple[int, int]:
        """What goes with an event that is taken out: of an item of a list, the comma before it, or else after it."""
        event = self.events[number]
        if self.form != "list":
            return event.start, event.end
        if any(changed.get(before, b"") is not None for before in range(number)):
            return self.events[number - 1].end, event.end
        return event.start, event.end if number + 1 == len(self.events) else self.events[number + 1].start


def read_events(body: bytes, headers: Headers, *, listed: bool = False) -> EventTexts | None:
    """The events of a decoded body; None when it is no stream of events. What it is, is told as `read_answer` does.

    `listed`: a JSON list is a stream of its items.
    """
    kind = header(headers, b"content-type").lower()
    if b"vnd.amazon.eventstream" in kind:
        return EventTexts(body, list(_frames(body)), "frames")
    if listed and b"event-stream" not in kind and body.lstrip().startswith(b"["):
        items = [EventText(start, end, body[start:end], ((start, end),)) for start, end in whole_items(body)]
        return EventTexts(body, items, "list") if items and all(map(_is_object, items)) else None
    if b"event-stream" not in kind and b"ndjson" not in kind and read_json(body)[1]:
        return None
    if body.lstrip().startswith(b"{"):
        lines = list(_json_lines(body))
        # One value over several lines that was cut short has no line that is one.
        return EventTexts(body, lines, "lines") if b"ndjson" in kind or any(map(_is_object, lines)) else None
    events = list(_events(body))
    return EventTexts(body, events) if events and (b"event-stream" in kind or _looks_framed(body)) else None


def _is_object(line: EventText) -> bool:
    return isinstance(read_json(line.text)[0], dict)


def _looks_framed(body: bytes) -> bool:
    """Some recorders lose the content type."""
    return body.removeprefix(_BOM).startswith((b"data:", b"event:", b"id:", b":"))


@dataclass(slots=True)
class _Open:
    """An event of which not all lines have come."""

    start: int
    parts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def closed(self, body: bytes, end: int) -> Iterator[EventText]:
        if self.parts:
            text = b"\n".join([body[a:b] for a, b in self.parts])
            yield EventText(self.start, end, text, tuple(self.parts))


def _events(body: bytes) -> Iterator[EventText]:
    at = len(_BOM) if body.startswith(_BOM) else 0
    one = _Open(at)
    while at < len(body):
        match = _LINE.match(body, at)
        assert match is not None  # it matches anything
        end = match.start(1)
        line = body[at:end]
        if not line:
            yield from one.closed(body, match.end())
            one = _Open(match.end())
        elif line == b"data":
            one.parts.append((end, end))
        elif line.startswith(b"data:"):
            one.parts.append((at + (6 if line.startswith(b"data: ") else 5), end))
        at = match.end()
    yield from one.closed(body, at)


def _json_lines(body: bytes) -> Iterator[EventText]:
    for match in re.finditer(rb"([^\n]*)\n|([^\n]+)\Z", body):
        text = body[match.start() : match.end()].removesuffix(b"\n")
        if text.strip(b" \t\r"):
            yield EventText(match.start(), match.end(), text, ((match.start(), match.start() + len(text)),))


def _frames(body: bytes) -> Iterator[EventText]:
    for start, end in messages(body):
        payload = _payload(body[start:end])
        match = _INNER.search(payload)
        try:
            text = base64.b64decode(match[2], validate=True) if match and match[2] else payload
        except binascii.Error:
            text = payload
        yield EventText(start, end, text)


def _payload(message: bytes) -> bytes:
    headers = _PRELUDE.unpack_from(message)[1]
    return message[12 + headers : -4]


def _reframed(message: bytes, text: bytes) -> bytes:
    """A message of an AWS event stream with another text: its lengths and checksums are made anew."""
    payload = _payload(message)
    match = _INNER.search(payload)
    inner = base64.b64encode(text)
    payload = payload[: match.start(2)] + inner + payload[match.end(2) :] if match and match[2] else text
    headers = _PRELUDE.unpack_from(message)[1]
    prelude = _PRELUDE.pack(16 + headers + len(payload), headers)
    out = prelude + _CRC.pack(zlib.crc32(prelude)) + message[12 : 12 + headers] + payload
    return out + _CRC.pack(zlib.crc32(out))


def _line_before(body: bytes, start: int, end: int) -> tuple[int, int]:
    """The line that ends at `end`, and what ended the one before it: what ends this one comes in its place."""
    start = max(body.rfind(b"\n", 0, start), body.rfind(b"\r", 0, start))
    return start - (body[start - 1 : start + 1] == b"\r\n"), end


def _narrowed(body: bytes, edit: Edit) -> Edit:
    """The same edit without what both texts begin and end with, so that boundaries near it stay."""
    old, new = body[edit.start : edit.end], edit.new
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    tail = next((n for n in range(most - head) if old[-1 - n] != new[-1 - n]), most - head)
    return Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail])
