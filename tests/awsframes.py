"""Messages of AWS event streams, as Bedrock sends them: lengths, headers, payload, checksums.

https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html has the format.
"""

import struct
import zlib


def frame(payload: bytes, headers: dict[str, str] | None = None) -> bytes:
    """One message; `headers` are strings, an event's type where none are given."""
    named = {":event-type": "chunk"} if headers is None else headers
    head = b"".join(_header(name.encode(), value.encode()) for name, value in named.items())
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: bytes, value: bytes) -> bytes:
    return struct.pack(">B", len(name)) + name + struct.pack(">BH", 7, len(value)) + value
