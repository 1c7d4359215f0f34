"""Cassettes of VCR.py, go-vcr and Ruby's VCR, and what others made of them. Knows their fields, no YAML.

One reader for all, since each dialect's own names are no other's. `body` is a text, bytes, null, or an object with
`string` or `base64_string`; `parsed_body` is a JSON value in its place; `content`, `status_code` and `http_version` are
what VCR.py once wrote for httpx.
"""

import base64
import binascii
import re
from urllib.parse import urlencode

import orjson

from tapeproxy.tapes.imports.foreign import Foreign, pairs_of, url_of
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.own import in_text, restored
from tapeproxy.tapes.imports.times import duration, moment


def is_cassette(root: Node) -> bool:
    """Whether a parsed file is one."""
    return isinstance(root.value, dict) and any(name in root.value for name in ("interactions", "http_interactions"))


def entries(root: Node) -> list[Node]:
    """Its interactions. Raises ForeignFormatError."""
    return root.need("interactions", "http_interactions").items()


def take(entry: Node) -> Foreign:
    """One interaction. Raises ForeignFormatError."""
    asked, given = entry.need("request"), entry.need("response")
    status, reason = _status(given)
    absent = ["boundaries", "lanes"]
    start = moment(entry.get("recorded_at"))
    took = duration(given.get("duration"))
    if start is None and took is None:
        absent.insert(0, "times")
    taken = Foreign(
        place=entry.place,
        method=asked.need("method").text().upper().encode("latin-1", "replace"),
        url=url_of(asked.need("uri", "url")),
        request_headers=_headers(asked),
        request_body=_body(asked, absent),
        h2=any((one := side.get("proto", "http_version")) and "2" in one.text()[:6] for side in (asked, given)),
        status=status,
        reason=reason,
        headers=_headers(given),
        body=_body(given, absent),
        start=start,
        waited=took,
        took=took,
        absent=tuple(absent),
    )
    return restored(taken, in_text(entry))


def _headers(side: Node) -> tuple[tuple[bytes, bytes], ...]:
    found = side.get("headers")
    return () if found is None else pairs_of((name, node.value) for name, node in found.fields())


def _status(given: Node) -> tuple[int, bytes | None]:
    found = given.need("status", "status_code", "code")
    if isinstance(found.value, dict):
        message = found.get("message")
        return found.need("code").whole(), None if message is None else _phrase(message)
    if isinstance(found.value, str) and (match := re.fullmatch(r"(\d{3})(?: (.*))?", found.value)):
        return int(match[1]), (match[2] or "").encode("latin-1", "replace")
    return found.whole(), None


def _phrase(message: Node) -> bytes:
    return message.octets().replace(b"\r", b" ").replace(b"\n", b" ")


def _body(side: Node, absent: list[str]) -> bytes:
    parsed = side.get("parsed_body")
    if parsed is not None:
        return json_text(parsed)
    found = side.get("body", "content")
    if found is None:
        form = side.get("form")  # go-vcr
        if form is not None and form.value:
            return urlencode([(name, one.text()) for name, node in form.fields() for one in node.items()]).encode()
        lengths = [value for name, value in _headers(side) if name.lower() == b"content-length"]
        if any(value not in (b"", b"0") for value in lengths):
            absent.append("a body")
        return b""
    if not isinstance(found.value, dict):
        return found.octets()
    packed = found.get("base64_string")
    if packed is not None:
        return unpacked(packed)
    text = found.get("string", "content")
    if text is None:
        return b""
    encoding = found.get("encoding")
    return text.octets() if encoding is None or isinstance(text.value, bytes) else _encoded(text, encoding.text())


def json_text(node: Node) -> bytes:
    """The JSON text of a parsed value; a text is taken for the body itself. Raises ForeignFormatError."""
    if isinstance(node.value, str | bytes):
        return node.octets()
    try:
        return orjson.dumps(node.value, option=orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise node.wrong(f"this is no JSON: {error}") from None


def unpacked(node: Node) -> bytes:
    """Base64 undone, white space allowed. Raises ForeignFormatError."""
    try:
        return base64.b64decode(b"".join(node.octets().split()), validate=True)
    except binascii.Error as error:
        raise node.wrong(f"this is no base64: {error}") from None


def _encoded(text: Node, encoding: str) -> bytes:
    """A text in the encoding that Ruby says it had; ASCII-8BIT is bytes, which YAML holds as they are."""
    try:
        return text.text().encode(encoding)
    except (LookupError, UnicodeError):  # unknown, none of texts (rot13), or not that of this text
        return text.octets()
