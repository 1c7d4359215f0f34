"""A body with every layer of encoding undone: what a reader who looks for secrets can come to see.

Content codings, events and lines, JSON, JSON in strings, forms, multipart, percent-encoding, base64, and the text that
the deltas of a stream add up to. Knows encodings, not what in them is a secret. Never raises.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

import orjson

from tapeproxy.tapes.calls import aws_payloads
from tapeproxy.tapes.codings import decode, header, looks_like_text
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.sse import parse_events, split_json_lines

DEPTH: Final = 4
"""Layers that are undone one inside the other."""
_RUN: Final = re.compile(rb"[A-Za-z0-9+/_-]{20,}={0,2}")
_ESCAPED: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_BOUNDARY: Final = re.compile(rb'boundary=(?:"([^"]+)"|([^";\s]+))', re.IGNORECASE)
_FIELD_NAME: Final = re.compile(rb'name="([^"]*)"')
_LOOKED_AT: Final = 48
"""Bytes of a decoded run of base64 that show whether it is text."""
_URLSAFE: Final = bytes.maketrans(b"-_", b"+/")
CONSTANT: Final = frozenset({"id", "object", "model", "type", "created", "role", "system_fingerprint", "item_id"})
"""Fields that come with every event of a stream, and are not parts of a text."""


class View(NamedTuple):
    """A text at a `place` (a JSON path, mostly) in a field called `name`; `joined`: of several events' deltas."""

    place: str
    name: str
    text: bytes
    joined: bool = False


class Opened(NamedTuple):
    """The views of a body. `note`: why there may be more in it than can be seen, or empty."""

    views: Iterator[View]
    note: str


def open_body(body: bytes, headers: Headers) -> Opened:
    """Undo a body's codings and give the views of what is in it."""
    decoded = decode(body, headers)
    note = "" if decoded.whole else decoded.note
    return Opened(_views(decoded.data, header(headers, b"content-type").lower()), note)


def expand(view: View, depth: int = DEPTH) -> Iterator[View]:
    """The view itself, and those of what is encoded in it."""
    yield view
    if depth == 0:
        return
    text = view.text
    if text[:1] in (b"{", b"[") and isinstance(value := load(text), dict | list):
        for inner in leaves(value, view.place + "→$"):
            yield from expand(inner, depth - 1)
    if _ESCAPED.search(text):
        yield from expand(View(view.place + "→percent", view.name, unquote_to_bytes(text)), depth - 1)
    if b"\\/" in text:
        yield from expand(View(view.place, view.name, text.replace(b"\\/", b"/")), depth - 1)
    for match in _RUN.finditer(text):
        if (plain := decode_run(match[0])) is not None:
            yield from expand(View(view.place + "→base64", view.name, plain), depth - 1)


def decode_run(run: bytes) -> bytes | None:
    """The text that a run of base64 holds, whichever of its first four characters it begins at; None for no text."""
    for skip in range(4):
        head = _decoded(run[skip : skip + _LOOKED_AT])
        # What is short is text by chance now and then.
        if head is not None and len(head) >= 12 and looks_like_text(head):
            plain = _decoded(run[skip:])
            if plain is not None and looks_like_text(plain):
                return plain
    return _inflated(run)


def load(text: bytes) -> Any:
    """The JSON value; None when it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def leaves(value: Any, place: str = "$", name: str = "") -> Iterator[View]:
    """Every string in a JSON value, keys included, by its path and the name of the field that it is in."""
    stack = [(value, place, name)]
    while stack:
        one, where, called = stack.pop()
        if isinstance(one, str):
            yield View(where, called, one.encode(errors="surrogatepass"))
        elif isinstance(one, dict):
            stack += [(item, f"{where}.{key}", str(key)) for key, item in reversed(one.items())]
            yield from (View(where, "", key.encode(errors="surrogatepass")) for key in one if len(str(key)) >= 12)
        elif isinstance(one, list):
            stack += [(item, f"{where}[{n}]", called) for n, item in reversed(list(enumerate(one)))]


def _views(data: bytes, kind: bytes) -> Iterator[View]:
    if b"vnd.amazon.eventstream" in kind:
        yield from _stream([load(payload) for payload in aws_payloads(data)], [])
        return
    start = data.lstrip()[:1]
    if start in (b"{", b"[", b'"') and b"event-stream" not in kind and (value := load(data)) is not None:
        yield from leaves(value)
        if isinstance(value, list) and any(isinstance(one, dict) and "candidates" in one for one in value):
            # Gemini streams so without `alt=sse`. Of another list, what one field adds up to means nothing.
            yield from (view for view in _stream(value, []) if view.joined)
    elif b"event-stream" in kind or data.startswith((b"data:", b"event:", b"id:", b": ")):
        texts = [event.data.encode() for event in parse_events(data)]
        yield from _stream([load(text) for text in texts], texts)
        yield from _comments(data)
    elif start == b"{":
        lines = split_json_lines(data)
        yield from _stream([load(line) for line in lines], lines)
    elif b"x-www-form-urlencoded" in kind:
        yield from _form(data)
    elif b"multipart/" in kind and (boundary := _BOUNDARY.search(kind)):
        yield from _multipart(data, boundary)
    else:
        yield View("", "", data)


def _stream(values: list[Any], texts: list[bytes]) -> Iterator[View]:
    """Each event's leaves, those that are not JSON whole, and what the leaves of one path add up to."""
    joined: dict[tuple[object, ...], list[bytes]] = {}
    for number, value in enumerate(values):
        if not isinstance(value, dict | list):
            if value is None and number < len(texts):
                yield View(f"event {number + 1}", "", texts[number])
            continue
        for leaf in leaves(value):
            yield leaf._replace(place=f"event {number + 1} {leaf.place}")
            if leaf.name not in CONSTANT:
                joined.setdefault(stream_of(leaf, value), []).append(leaf.text)
    for key, parts in joined.items():
        if len(parts) > 1:
            yield View(f"events {key[0]}, joined", "", b"".join(parts), joined=True)


def stream_of(leaf: View, value: Any) -> tuple[object, ...]:
    """Whose delta a leaf is: its path, and the numbers that tell one stream's parts from another's."""
    marks = ("type", "index", "output_index", "content_index", "item_id") if isinstance(value, dict) else ()
    choices = value.get("choices") if isinstance(value, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    numbers = [str(value.get(mark)) for mark in marks]
    return leaf.place, *numbers, first.get("index") if isinstance(first, dict) else None


def _comments(data: bytes) -> Iterator[View]:
    """What event streams hold besides data."""
    for line in data.splitlines():
        if line[:1] == b":" or line.startswith((b"id:", b"event:")):
            yield View("event stream", "", line)


def _form(data: bytes) -> Iterator[View]:
    for pair in data.replace(b"+", b" ").split(b"&"):
        name, _, value = pair.partition(b"=")
        called = unquote_to_bytes(name).decode(errors="replace")
        yield View(f"field {called}", called, unquote_to_bytes(value))


def _multipart(data: bytes, boundary: re.Match[bytes]) -> Iterator[View]:
    # The header is in lower case here, so the boundary is looked for by what it is a mark of.
    mark = data[: max(data.find(b"\r\n"), 0)]
    if not mark.lower().endswith(boundary[1] or boundary[2]):
        yield View("", "", data)
        return
    for number, part in enumerate(data.split(mark)[1:]):
        head, _, content = part.partition(b"\r\n\r\n")
        named = _FIELD_NAME.search(head)
        called = named[1].decode(errors="replace") if named else ""
        yield View(f"part {number + 1} headers", "", head)
        yield View(f"part {called or number + 1}", called, content.removesuffix(b"\r\n"))


def _decoded(run: bytes) -> bytes | None:
    plain = run.rstrip(b"=").translate(_URLSAFE)
    if len(plain) % 4 == 1:
        plain = plain[:-1]
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


def _inflated(run: bytes) -> bytes | None:
    """The text that gzip in base64 holds: it begins so."""
    if not run.startswith(b"H4sI"):
        return None
    plain = _decoded(run)
    if plain is None:
        return None
    text = decode(plain, ((b"content-encoding", b"gzip"),)).data
    return text if text != plain and looks_like_text(text) else None
