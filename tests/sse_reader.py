"""Reads a stream of server-sent events back, as strictly as a test wants: an independent reader, not the product's."""

import json
from typing import Any


def parse_events(stream: bytes) -> list[tuple[str, Any]]:
    """(event name or "", data) of each event; the data parsed, or the text when it is the [DONE] sentinel."""
    assert stream.endswith(b"\n\n")
    found = []
    for block in stream.decode().removesuffix("\n\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert list(fields) in (["data"], ["event", "data"])
        data = fields["data"]
        found.append((fields.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return found


def without_repeats(names: list[str]) -> list[str]:
    """The sequence with runs of the same name shortened to one."""
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]
