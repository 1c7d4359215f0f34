"""The canonical body of a request as version 1 of identity had it. Frozen: tapes of that version are told apart by it.

It knows no rules. Where `canonical.py` is better: a multipart body was its bytes with the boundary replaced wherever it
stood, lines of JSON were bytes, a damaged compressed body was what could be read of it.
"""

import json
import re
from typing import Any

import orjson

from tapeproxy.tapes.bodyforms import Body, content_type, framed, split_pairs
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.jsonvalues import has_long_number, too_deep
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.tokens import mask_tokens


def canonical_body(headers: Headers, body: bytes) -> tuple[str, Body]:
    """The media type and the canonical body of a request."""
    essence, _, parameters = content_type(headers).decode("latin-1").partition(";")
    media = essence.strip().lower()
    charset = re.search(r'charset="?([^";\s]+)', parameters, re.IGNORECASE)
    if charset and charset[1].lower() not in ("utf-8", "utf8"):
        media += f"; charset={charset[1].lower()}"
    if not body:
        return media, Body("empty", b"", b"")
    data = mask_tokens(decode(body, headers).data)
    if "json" in media or (media in ("", "text/plain") and data[:1] in (b"{", b"[")):
        value, canonical = _canonical_json(data)
        if canonical is not None:
            return media, Body("json", value, canonical)
    if media == "application/x-www-form-urlencoded":
        pairs = split_pairs(data)
        return media, Body("form", pairs, b"".join(framed(name) + framed(value) for name, value in pairs))
    boundary = re.search(r'boundary=(?:"([^"]+)"|([^";\s]+))', parameters, re.IGNORECASE)
    if media.startswith("multipart/") and boundary:
        mark = (boundary[1] or boundary[2]).encode("latin-1")
        plain = data.replace(b"--" + mark, b"--boundary")
        return media, Body("multipart", plain, plain)
    return media, Body("bytes", data, data)


def _canonical_json(data: bytes) -> tuple[Any, bytes | None]:
    try:
        if has_long_number(data):
            value = json.loads(data)
            if too_deep(value):
                return None, None
            return value, json.dumps(value, sort_keys=True).encode(errors="surrogatepass")
        value = orjson.loads(data)
        return value, orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None, None
