"""Redaction of a whole body by what it is: JSON, a form, multipart, anything else. Knows no content codings."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

import orjson

from tapeproxy.tapes.records import Headers

if TYPE_CHECKING:
    from tapeproxy.tapes.jsonpaths import JsonPath

_BOUNDARY: Final = re.compile(rb'boundary=(?:"([^"]+)"|([^";\s]+))', re.IGNORECASE)
_NAME: Final = re.compile(rb'(?:^|[;\s])name="?((?<=")[^"]*|[^";\s]+)', re.IGNORECASE)
_PART_TYPE: Final = re.compile(rb"(?i)content-type:\s*([^\r\n]*)")
_DEEPEST: Final = 4


@dataclass(frozen=True, slots=True)
class BodyRedactor:
    """`content` redacts what stands anywhere, `value` a whole secret, `pair` an encoded `name=value`.

    `is_secret` judges a field by name and value; `paths` are the user's.
    """

    content: Callable[[bytes], bytes]
    value: Callable[[bytes], bytes]
    pair: Callable[[bytes], bytes]
    is_secret: Callable[[bytes, bytes], bool]
    paths: "tuple[JsonPath, ...]"

    def redact(self, kind: bytes, body: bytes, depth: int = 0) -> bytes:
        """A body of content type `kind` without its secrets."""
        low = kind.lower()
        if b"x-www-form-urlencoded" in low:
            return self.content(b"&".join(map(self.pair, body.split(b"&"))))
        if b"multipart/" in low and depth < _DEEPEST and (mark := _BOUNDARY.search(kind)):
            return self._multipart(mark[1] or mark[2], body, depth)
        if self.paths and (b"json" in low or body[:1] in (b"{", b"[")):
            body = self._json(body)
        return self.content(body)

    def _multipart(self, boundary: bytes, body: bytes, depth: int) -> bytes:
        parts = body.split(b"--" + boundary)
        return (b"--" + boundary).join(self._part(part, depth) for part in parts)

    def _part(self, part: bytes, depth: int) -> bytes:
        head, gap, content = part.partition(b"\r\n\r\n")
        if not gap:
            return self.content(part)
        end = b"\r\n" if content.endswith(b"\r\n") else b""
        content = content.removesuffix(end) if end else content
        name, kind = _NAME.search(head), _PART_TYPE.search(head)
        if name is not None and self.is_secret(name[1], content):
            return self.content(head) + gap + self.value(content) + end
        return self.content(head) + gap + self.redact(kind[1] if kind else b"", content, depth + 1) + end

    def _json(self, body: bytes) -> bytes:
        """The strings that the user's paths name, wherever the same string stands in the body."""
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return body
        from tapeproxy.tapes.redactionrules import strings_at

        for path in self.paths:
            for text in sorted(strings_at(path, value), key=len, reverse=True):
                if text:
                    token = b'"' + self.value(text.encode()) + b'"'
                    for form in (orjson.dumps(text), _ascii(text)):
                        body = body.replace(form, token)
        return body


def redact_quoted(text: bytes, content: Callable[[bytes], bytes], *, plus: bool = False) -> bytes:
    """Percent-encoded `text` without the secrets that show when it is decoded. `plus`: a + stands for a space."""
    if b"%" not in text and not (plus and b"+" in text):
        return text
    plain = unquote_to_bytes(text.replace(b"+", b" ") if plus else text)
    clean = content(plain)
    if clean == plain:
        return text
    return quote_plus(clean).encode() if plus else quote(clean, safe="/:@!$&'()*+,;=~").encode()


def header_of(headers: Headers, name: bytes) -> bytes:
    """All values of header `name` (in lower case) as one list."""
    return b", ".join([value for key, value in headers if key.lower() == name])


def _ascii(text: str) -> bytes:
    import json

    return json.dumps(text).encode()
