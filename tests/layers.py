"""Every layer of encoding undone, again and again: what a secret may hide in."""

import base64
import binascii
import contextlib
import gzip
import json
import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import brotli
import zstandard

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{12,}={0,2}")
_ESCAPED = re.compile(rb"\\+([\"\\/nrt]|u[0-9a-fA-F]{4})")
_ERRORS = (OSError, EOFError, ValueError, zlib.error, brotli.error, zstandard.ZstdError)
_UNDO = (
    gzip.decompress,
    zlib.decompress,
    brotli.decompress,
    lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
)


def layers(data: bytes, depth: int = 5) -> Iterator[bytes]:
    """`data`, and whatever it can be decoded to."""
    seen = {data}
    waiting = [(data, depth)]
    while waiting:
        one, left = waiting.pop()
        yield one
        for inner in _inside(one) if left else ():
            if inner and inner not in seen:
                seen.add(inner)
                waiting.append((inner, left - 1))


def holds(data: bytes, secret: bytes) -> bool:
    """Whether `secret` stands in `data` in any encoding."""
    return any(secret in one for one in layers(data))


def _inside(data: bytes) -> Iterator[bytes]:
    for undo in _UNDO:
        with contextlib.suppress(*_ERRORS):
            yield undo(data)
    if b"%" in data:
        yield unquote_to_bytes(data.replace(b"+", b" "))
    if b"\\" in data:
        yield _ESCAPED.sub(_unescaped, data)
    for match in _BASE64.finditer(data):
        text = match[0].rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        if len(text) < 4096:
            for start in range(4):
                with contextlib.suppress(binascii.Error):
                    yield base64.b64decode(text[start:] + b"=" * (-len(text[start:]) % 4))
    yield from _streams(data)
    if data[8:12] == struct.pack(">I", zlib.crc32(data[:8])):
        yield b"\n".join(_payloads(data))


def _payloads(data: bytes) -> Iterator[bytes]:
    """The payloads of an AWS event stream, and what they hold in base64."""
    while len(data) >= 16:
        size, headers = struct.unpack_from(">II", data)
        payload, data = data[12 + headers : size - 4], data[size:]
        inner = None
        with contextlib.suppress(ValueError, AttributeError):  # of a stream that was cut, or is none
            inner = json.loads(payload).get("bytes")
        yield payload if inner is None else base64.b64decode(inner)


def _unescaped(match: re.Match[bytes]) -> bytes:
    one = match[1]
    if one[:1] == b"u":
        return chr(int(one[1:], 16)).encode(errors="surrogatepass")
    return {b"n": b"\n", b"r": b"\r", b"t": b"\t"}.get(one, one)


def _streams(data: bytes) -> Iterator[bytes]:
    """The texts that lines of JSON carry piece by piece, put together by their JSON path."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for line in data.split(b"\n"):
        try:
            value = json.loads(line.removeprefix(b"data:").strip())
        except ValueError:
            continue
        _collect(value, "", texts)
    for pieces in texts.values():
        yield "".join(pieces).encode(errors="surrogatepass")


def _collect(value: Any, path: str, texts: defaultdict[str, list[str]]) -> None:
    if isinstance(value, str):
        texts[path].append(value)
    elif isinstance(value, dict):
        for name, one in value.items():
            _collect(one, f"{path}.{name}", texts)
    elif isinstance(value, list):
        for one in value:
            _collect(one, f"{path}[]", texts)
