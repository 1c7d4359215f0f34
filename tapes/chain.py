"""The hash chain: each line carries the BLAKE3 of the line before it and its own bytes. Knows bytes, not JSON.

A line is `CONTENT,"h":"HEX"}` where HEX = BLAKE3(previous line's 32 hash bytes + CONTENT), lower case. Exact bytes are
hashed, so no canonical form of JSON is needed, and a reader in any language can check a tape with a hash and a slice.
"""

from blake3 import blake3

START = bytes(32)
"""What the first line is chained to."""
MAX_LINE = 256 << 20
"""Bytes that a line may have, without its newline: what a reader has to hold at once."""

_OPEN = b',"h":"'
_TAIL = len(_OPEN) + 64 + 2


def link(previous: bytes, content: bytes) -> bytes:
    """The 32 hash bytes of a line with `content` after a line whose hash was `previous`."""
    return blake3(previous + content).digest()


def close_line(previous: bytes, obj: bytes) -> tuple[bytes, bytes]:
    """Chain one JSON object (`{...}`, not empty, no newline): its line with the newline, and its hash.

    Raises ValueError when the line would be longer than a reader takes.
    """
    if len(obj) > MAX_LINE - _TAIL + 1:
        raise ValueError(f"the line would be longer than {MAX_LINE} bytes")
    content = obj[:-1]
    digest = link(previous, content)
    return b"".join((content, _OPEN, digest.hex().encode(), b'"}\n')), digest


def open_line(line: bytes) -> tuple[bytes, bytes] | None:
    """Split a line (without its newline) into CONTENT and HEX; None when it does not end in a hash."""
    if len(line) <= _TAIL or line[-2:] != b'"}' or line[-_TAIL : -_TAIL + len(_OPEN)] != _OPEN:
        return None
    return line[:-_TAIL], line[-66:-2]
