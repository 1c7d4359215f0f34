"""What the file of an encrypted tape begins with, for those who only want to know whether it is one."""

MAGIC = b"\x89tapeenc"


def is_encrypted(start: bytes) -> bool:
    """Whether a file that begins so is an encrypted tape; `start` has at least 8 bytes, if the file has."""
    return start.startswith(MAGIC)
