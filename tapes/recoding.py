"""Content codings applied: a redacted body compressed again as it was. Knows compressed bytes, not what they mean."""

import importlib
import zlib
from collections.abc import Callable, Iterable
from typing import Any


def encode(data: bytes, codings: Iterable[str]) -> bytes:
    """`data` with `codings` applied: the names that `decode` gave, the one applied last first."""
    for coding in reversed(tuple(codings)):
        data = _ENCODERS[coding](data)
    return data


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _brotli(data: bytes) -> bytes:
    # What was decoded with it is there, and has both.
    module: Any = importlib.import_module("brotli")
    packed: bytes = module.compress(data, quality=4)
    return packed


def _zstd(data: bytes) -> bytes:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            packed: bytes = importlib.import_module(name).compress(data)
        except ImportError:
            continue
        return packed
    return bytes(importlib.import_module("zstandard").ZstdCompressor().compress(data))


_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "deflate": zlib.compress,
    "br": _brotli,
    "zstd": _zstd,
}
