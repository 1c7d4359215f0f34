"""The canonical body of a request: what is compared of it, the same code in record and replay. Knows no URL.

Content codings are undone first, where that can be done whole. Then, by what the content type says and the bytes bear
out: JSON by value; lines or sequences of JSON, each by value; a form as pairs; multipart as its parts, whatever the
boundary is, each with its headers and a body that is read in the same way; anything else (event streams, protobuf,
archives) byte for byte. In what is text, facts of the machine are marked (`machine.py`) and secrets masked.
"""

import re
from dataclasses import dataclass

from tapeproxy.tapes.bodyforms import Body, PartValue, content_type, framed, split_pairs
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.jsonvalues import read_json, write_json
from tapeproxy.tapes.machine import Marks
from tapeproxy.tapes.multiparts import ContentType, Part, parse_content_type, parse_multipart
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.rules import NOWHERE, Local
from tapeproxy.tapes.tokens import mask_tokens

_LINES = frozenset(f"application/{name}" for name in ("ndjson", "jsonl", "jsonlines", "x-ndjson", "x-jsonl"))
_LINES |= {"application/x-jsonlines", "application/stream+json", "application/json-seq", "application/geo+json-seq"}
_FORM = "application/x-www-form-urlencoded"
_UTF8 = frozenset({"utf-8", "utf8"})
_TEXTUAL = re.compile(r"text/|application/([\w.+-]*(json|xml|javascript|yaml)|graphql|sql)|$")
_DEEPEST = 4
"""Multipart in multipart: more is bytes."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """The rules and marks for one body."""

    local: Local
    marks: Marks

    def content(self, media: ContentType, data: bytes, depth: int = 0) -> Body:
        """The canonical form of a body whose content coding is undone and whose secrets are masked."""
        if media.essence == _FORM:
            return self._form(data)
        if media.essence.startswith("multipart/") and (boundary := media.get("boundary")) and depth < _DEEPEST:
            taken = parse_multipart(data, boundary.encode("latin-1", errors="replace"))
            if taken is not None:
                return self._multipart(*taken, depth)
        if _TEXTUAL.match(media.essence):
            data = self.marks(data)
            if found := self._json(media.essence, data):
                return found
        data = self.local.rewrite("rewrite-body", data)
        return Body("bytes", data, data)

    def _json(self, essence: str, data: bytes) -> Body | None:
        if essence in _LINES:
            return self._lines(data, b"\x1e" if essence.endswith("json-seq") else b"\n")
        if "json" not in essence and not (essence in ("", "text/plain") and data[:1] in (b"{", b"[")):
            return None
        value, good = read_json(data)
        if not good:
            return self._lines(data, b"\n") if b"\n" in data.strip() else None
        value = self.local.remove_json(value)
        canonical = write_json(value)
        if canonical is None:
            return None
        rewritten = self.local.rewrite("rewrite-body", canonical)
        if rewritten == canonical:
            return Body("json", value, canonical)
        value, good = read_json(rewritten)
        again = write_json(value) if good else None
        return Body("bytes", rewritten, rewritten) if again is None else Body("json", value, again)

    def _lines(self, data: bytes, separator: bytes) -> Body | None:
        bodies = [self._json("application/json", line.strip()) for line in data.split(separator) if line.strip()]
        whole = [body for body in bodies if body is not None]
        if len(whole) != len(bodies):
            return None
        return Body("lines", [body.value for body in whole], b"\n".join(body.canonical for body in whole))

    def _form(self, data: bytes) -> Body:
        pairs = tuple(
            (name, self.local.rewrite("rewrite-body", self.marks(value)))
            for name, value in split_pairs(data)
            if not self.local.ignores("ignore-form", name)
        )
        return Body("form", pairs, b"".join(framed(name) + framed(value) for name, value in pairs))

    def _multipart(self, before: bytes, parts: list[Part], after: bytes, depth: int) -> Body:
        values = [self._part(part, depth + 1) for part in parts]
        kept = [one for one in values if not self.local.ignores("ignore-form", one.name.encode("latin-1", "replace"))]
        out = [framed(before), framed(after)]
        for one in kept:
            lines = b"".join(framed(name) + framed(value) for name, value in one.headers)
            out += (framed(lines), framed(one.body.form.encode()), framed(one.body.canonical))
        return Body("multipart", kept, b"".join(out))

    def _part(self, part: Part, depth: int) -> PartValue:
        media = parse_content_type(content_type(part.headers))
        name, headers = "", list[tuple[bytes, bytes]]()
        for header, value in part.headers:
            low = header.lower()
            if low == b"content-type":
                value = media_name(media).encode("latin-1", errors="replace")
            elif low == b"content-disposition":
                name = parse_content_type(value).get("name")
            headers.append((low, self.marks(value)))
        return PartValue(name, tuple(headers), self.content(media, part.body, depth))


def canonical_body(
    headers: Headers, body: bytes, local: Local = NOWHERE, marks: Marks | None = None
) -> tuple[str, Body]:
    """The media type and the canonical body of a request, by the rules for its place."""
    media = parse_content_type(content_type(headers))
    if not body:
        return media_name(media), Body("empty", b"", b"")
    decoded = decode(body, headers)
    # Of a body that can't be undone whole, what came out is not all of it, and so does not tell it from others.
    data = mask_tokens(decoded.data if decoded.whole else body)
    return media_name(media), _Reader(local, marks or Marks()).content(media, data)


def media_name(media: ContentType) -> str:
    """A content type as it is compared: no boundary, and no charset where that is UTF-8."""
    out = media.essence
    for name, value in media.parameters:
        if name == "charset" and value.lower() in _UTF8:
            continue
        if name != "boundary" or not media.essence.startswith("multipart/"):
            out += f"; {name}={value.lower() if name == 'charset' else value}"
    return out
