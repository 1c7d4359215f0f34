"""Where the strings of a JSON text stand in it, byte by byte, and under which path. Knows JSON's grammar alone."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


class StringAt(NamedTuple):
    """The string `value` is `text[start:end]` without its quotes, and stands at `path`, as `$.choices[0].text`."""

    path: str
    start: int
    end: int
    value: str


def strings_in(text: bytes) -> Iterator[StringAt]:
    """The strings in a JSON text that are values, in order. Raises ValueError where it is not JSON."""
    orjson.loads(text)  # so that what follows may trust it
    path: list[str] = []
    counts: list[int | None] = []
    named = False
    for match in TOKEN.finditer(text):
        word = match[0]
        if word in (b"{", b"["):
            path.append("" if word == b"{" else "[0]")
            counts.append(None if word == b"{" else 0)
            named = False
        elif word in (b"}", b"]"):
            path.pop()
            counts.pop()
        elif word == b",":
            named = False
            if (count := counts[-1]) is not None:
                counts[-1] = count + 1
                path[-1] = f"[{count + 1}]"
        elif word == b":":
            named = True
        elif word[:1] == b'"':
            value: str = orjson.loads(word)
            if counts and counts[-1] is None and not named:
                path[-1] = f".{value}"
            else:
                yield StringAt("$" + "".join(path), match.start() + 1, match.end() - 1, value)
