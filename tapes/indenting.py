"""JSON text laid out for people; moves white space only, so what is shown is what was sent: `0.00`, escapes, order."""

import re

import orjson

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_DEEPEST = 40
"""Levels that are indented: past these, a hostile text would grow by its depth at every line."""


def indent_json(text: str) -> str | None:
    """`text` with one value a line and two spaces a level; None when it is not JSON."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    out: list[str] = []
    depth = 0
    before = ""
    for token in _TOKEN.findall(text):
        if token in "}]":
            depth -= 1
            if before not in "{[":
                out.append(_line(depth))
        elif before and before in "{[":
            out.append(_line(depth))
        if token in "{[":
            depth += 1
        out.append(": " if token == ":" else token)
        if token == ",":
            out.append(_line(depth))
        before = token
    return "".join(out)


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST)
