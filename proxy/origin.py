"""Is this tape one of ours? A mark that only its recorder's own machine can make and recognise.

`replay TAPE` runs the command that is on the tape. From a stranger's tape that would be the stranger's command, so it
is run without being asked for only when the head's `host` is this mark: a hash, keyed with the user's redaction key,
of the host's name, the command and the start. To anyone else it says nothing; copied to another tape it fits nothing.
"""

from collections.abc import Sequence

from blake3 import blake3

from tapeproxy.tapes.records import Head


def origin_mark(key: bytes, hostname: str, argv: Sequence[str], started_at: str) -> str:
    """The mark, 32 hex digits, for a tape of `argv` begun at `started_at` on `hostname`."""
    words = (hostname, started_at, *argv)
    framed = b"".join(len(word.encode(errors="surrogateescape")).to_bytes(8, "big") for word in words)
    text = b"".join(word.encode(errors="surrogateescape") for word in words)
    return blake3(b"tapeproxy origin\0" + framed + text, key=key).hexdigest(16)


def is_ours(head: Head, key: bytes, hostname: str) -> bool:
    """True when the tape was recorded with this key on this host and its command was not changed since."""
    import hmac  # 2 ms, and of no use where the command is given

    mark = origin_mark(key, hostname, head.argv, head.started_at)
    return hmac.compare_digest(head.host.encode(errors="surrogateescape"), mark.encode())
