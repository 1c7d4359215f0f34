"""Recordings of Azure's test proxy: JSON with `Entries`. Knows how it writes bodies.

A JSON body is a JSON value, a text a text or an array of its lines, anything else base64.
"""

import re
from typing import Final

from tapeproxy.tapes.imports.foreign import Foreign, pairs_of, url_of
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.vcr import json_text, unpacked

_TEXT: Final = re.compile(rb"text/|json|xml|urlencoded|javascript", re.IGNORECASE)


def is_recording(root: Node) -> bool:
    """Whether a parsed file is one."""
    found = root.value.get("Entries") if isinstance(root.value, dict) else None
    return isinstance(found, list) and all(isinstance(one, dict) and "RequestUri" in one for one in found)


def entries(root: Node) -> list[Node]:
    """Its entries. Raises ForeignFormatError."""
    return root.need("Entries").items()


def take(entry: Node) -> Foreign:
    """One entry. Raises ForeignFormatError."""
    asked, given = _headers(entry, "RequestHeaders"), _headers(entry, "ResponseHeaders")
    return Foreign(
        place=entry.place,
        method=entry.need("RequestMethod").text().upper().encode("latin-1", "replace"),
        url=url_of(entry.need("RequestUri")),
        request_headers=asked,
        request_body=_body(entry.get("RequestBody"), asked),
        status=entry.need("StatusCode").whole(),
        headers=given,
        body=_body(entry.get("ResponseBody"), given),
        absent=("times", "boundaries", "lanes", "reason phrase"),
    )


def _headers(entry: Node, name: str) -> tuple[tuple[bytes, bytes], ...]:
    found = entry.get(name)
    return () if found is None else pairs_of((field, node.value) for field, node in found.fields())


def _body(found: Node | None, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    if found is None:
        return b""
    kind = b", ".join(value for name, value in headers if name.lower() == b"content-type")
    if isinstance(found.value, list) and all(isinstance(one, str) for one in found.value) and b"json" not in kind:
        return b"".join(one.octets() for one in found.items())
    if not isinstance(found.value, str):
        return json_text(found)
    if kind and not _TEXT.search(kind):
        return unpacked(found)
    return found.octets()
