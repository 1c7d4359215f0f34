"""Server-sent events as bytes. Knows the framing, nothing of what the events mean."""

from collections.abc import Mapping

import orjson


def event(data: Mapping[str, object], name: str = "") -> bytes:
    """One event: an `event:` line when named, a `data:` line, a blank line."""
    head = b"event: %b\n" % name.encode() if name else b""
    return b"%bdata: %b\n\n" % (head, orjson.dumps(data))


def typed(data: Mapping[str, object]) -> bytes:
    """One event that is named after its own `type` field."""
    return event(data, str(data["type"]))


DONE = b"data: [DONE]\n\n"
"""The sentinel that ends a stream of chat completions."""
