"""Every layer of encoding undone, as one who looks for a secret would: no code of the product's."""

import base64
import binascii
import contextlib
import gzip
import re
import zlib
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

DEPTH = 5


def peel(data: bytes, depth: int = DEPTH) -> Iterator[bytes]:
    """The data, and whatever can be read in it."""
    yield data
    if depth == 0:
        return
    for inner in _inside(data):
        if inner != data:
            yield from peel(inner, depth - 1)


def holds(data: bytes, secret: bytes) -> bool:
    """Whether the secret can be read in the data."""
    return any(secret in view for view in peel(data))


def _inside(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"\x1f\x8b"):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            yield gzip.decompress(data)
        return
    if data[:1] == b"\x78":
        with contextlib.suppress(zlib.error):
            yield zlib.decompress(data)
    if b"%" in data:
        yield unquote_to_bytes(data)
    if b"\\" in data:
        yield _unescaped(data)
    pieces = [_unescaped(piece) for piece in re.findall(rb'"(?:content|text)"\s*:\s*"((?:[^"\\]|\\.)*)"', data)]
    if len(pieces) > 1:
        yield b"".join(pieces)
    for run in re.findall(rb"[A-Za-z0-9+/_-]{16,}={0,2}", data):
        for skip in range(4):
            if (plain := _decoded(run[skip:])) is not None:
                yield plain


def _unescaped(data: bytes) -> bytes:
    def char(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return chr(int(match[1], 16)).encode(errors="replace")
        return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(match[2], match[2])

    return re.sub(rb"\\(?:u([0-9a-fA-F]{4})|(.))", char, data)


def _decoded(run: bytes) -> bytes | None:
    plain = run.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        text = base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None
    printable = sum(32 <= byte < 127 or byte in b"\r\n\t" for byte in text)
    return text if text.startswith(b"\x1f\x8b") or printable > 0.8 * len(text) else None
