"""Multipart bodies taken apart (RFC 2046); knows delimiters, part headers and content types, not what parts mean."""

import re
from dataclasses import dataclass
from typing import Final

from tapeproxy.tapes.records import Headers

MOST: Final = 10_000
"""Parts that are taken apart; a body with more stays whole."""
_BLANK = re.compile(rb"\r?\n\r?\n|\A\r?\n")
_LINE = re.compile(rb"\r?\n(?![ \t])")
_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Part:
    """One part as it was sent: its headers in order, its body with whatever coding it has."""

    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class ContentType:
    """A content type: `essence` in lower case, parameters by name in lower case, in the order of names."""

    essence: str
    parameters: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str:
        """A parameter's value; empty when there is none."""
        return dict(self.parameters).get(name, "")


def parse_content_type(value: bytes) -> ContentType:
    """Read a Content-Type, or a header of that form as Content-Disposition. Takes anything."""
    text = value.decode("latin-1")
    essence, semicolon, rest = text.partition(";")
    found: dict[str, str] = {}
    for match in _PARAMETER.finditer(semicolon + rest):
        quoted, plain = match[2], match[3]
        found.setdefault(match[1].lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
    return ContentType(essence.strip().lower(), tuple(sorted(found.items())))


def parse_multipart(data: bytes, boundary: bytes) -> tuple[bytes, list[Part], bytes] | None:
    """What stands before the parts, the parts, and what follows them; None when the body is not of this boundary.

    A last part without a closing delimiter ends with the body: uploads are cut off.
    """
    delimiter = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary) + rb"(?:(--)[ \t]*|[ \t]*(?=\r?\n|\r?\Z))")
    first = delimiter.search(data)
    if first is None:
        return None
    parts: list[Part] = []
    last = first
    while last[1] is None:
        following = delimiter.search(data, last.end())
        piece = data[last.end() : len(data) if following is None else following.start()]
        parts.append(_part(re.sub(rb"\A\r?\n", b"", piece)))
        if following is None or len(parts) > MOST:
            return (data[: first.start()], parts, b"") if following is None else None
        last = following
    return data[: first.start()], parts, data[last.end() :].removeprefix(b"\r\n")


def _part(piece: bytes) -> Part:
    blank = _BLANK.search(piece)
    if blank is None:
        return Part((), piece)
    lines = _LINE.split(piece[: blank.start()]) if blank.start() else []
    pairs = [line.partition(b":") for line in lines]
    if not all(colon for _, colon, _ in pairs):
        return Part((), piece)
    return Part(tuple((name.strip(), value.strip()) for name, _, value in pairs), piece[blank.end() :])
