"""AWS event streams as bytes: messages with their checksums. Knows the framing, not what is in a message.

https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html: total length, headers' length and a CRC of the two
(4 bytes each), headers, payload, and a CRC of all before it.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")


def messages(body: bytes) -> Iterator[tuple[int, int]]:
    """Where the whole messages of a body begin and end."""
    at = 0
    while len(body) - at >= _PRELUDE.size:
        total, headers, _ = _PRELUDE.unpack_from(body, at)
        if total < _PRELUDE.size + headers + _CRC.size or at + total > len(body):
            return
        yield at, at + total
        at += total


def event_type(message: bytes) -> str:
    """What a message says that its event is, in its header `:event-type`; empty where it says nothing.

    A header is the length of its name, the name, a type (7: a string), the length of the value (2 bytes), the value.
    """
    size = _PRELUDE.unpack_from(message)[1]
    head = message[_PRELUDE.size : _PRELUDE.size + size]
    mark = b"\x0b:event-type\x07"
    at = head.find(mark) + len(mark)
    if at < len(mark) or len(head) < at + 2:
        return ""
    return head[at + 2 : at + 2 + int.from_bytes(head[at : at + 2])].decode(errors="replace")


def with_checksums(old: bytes, new: bytes) -> bytes:
    """`new` with its messages' CRCs put right, where it is `old` with bytes changed in place; else as it is."""
    if old == new or len(old) != len(new):
        return new
    out = bytearray(new)
    for start, end in messages(old):
        out[end - _CRC.size : end] = _CRC.pack(zlib.crc32(out[start : end - _CRC.size]))
    return bytes(out)
