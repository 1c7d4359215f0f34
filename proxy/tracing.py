"""The reads that the shims of a traced replay told of, kept small until someone asks for them.

A line is data from the agent's process, so nothing in it is believed to be well-formed.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from tapeproxy.tapes.readings import Kind, Read, Site

_MOST = 1_000_000
"""Reads that are kept; a process tells of at most 200,000, and counts of the rest."""
_KINDS = ("wall", "float", "str", "list")
_HEX = frozenset("0123456789abcdef")


class _Row(NamedTuple):
    site: str
    lane: str
    n: int
    kind: Kind
    values: tuple[str, ...]
    ns: int | None
    offset: int
    clock: int
    reads: int


class TraceLines:
    """The reads of one traced replay, in the order in which they were heard of. `pids` are its processes'."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self._rows: list[_Row] = []
        self._sites: dict[str, Site] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, line: dict[str, Any], redact: Callable[[str], str]) -> None:
        """Keep a sidecar line; `redact` is applied to its texts. Ignores what has another form."""
        match line:
            case {"k": "read", "site": str(site), "lane": str(lane), "n": int(n), "kind": str(kind), "value": value}:
                if len(self._rows) < _MOST:
                    read, values = _checked(kind, [value] if isinstance(value, str) else value, redact)
                    numbers = _int(line, "off"), _int(line, "clock"), max(_int(line, "count"), 1)
                    ns = line.get("ns")
                    when = ns if isinstance(ns, int) and read == "wall" else None
                    self._rows.append(_Row(sys.intern(site), sys.intern(lane), n, read, values, when, *numbers))
            case {"k": "site", "id": str(site), "what": str(what), "where": list(where), "via": list(via)}:
                lines, modules = (tuple(redact(str(item)) for item in items) for items in (where, via))
                self._sites[site] = Site(redact(what), lines, modules)
            case {"k": "hello", "pid": int(pid)}:
                self.pids.add(pid)
            case _:
                pass

    def requests_at(self, lane: str, at: int) -> int:
        """How many requests of a lane came before its first read from the `at`-th of all on, or before its last one."""
        later = (row.n for row in self._rows[at:] if row.lane == lane)
        earlier = (row.n for row in reversed(self._rows[:at]) if row.lane == lane)
        return next(later, next(earlier, 0))

    def reads(self, upto: int, lane: str | None, n: int | None) -> Iterator[Read]:
        """The first `upto` reads, and later told ones of `lane` before its request `n`: counted reads come late."""
        for number, row in enumerate(self._rows):
            if number < upto or (n is not None and row.lane == lane and row.n <= n):
                site = self._sites.get(row.site)
                if site is not None:
                    yield Read(site, *row[1:])


def _checked(kind: str, values: Any, redact: Callable[[str], str]) -> tuple[Kind, tuple[str, ...]]:
    texts = tuple(str(value) for value in values) if isinstance(values, list) else ()
    text = texts[0] if len(texts) == 1 else ""
    if kind == "uuid" and len(text) == 32 and _HEX.issuperset(text):
        return "uuid", texts
    if kind == "bytes" and text and len(text) % 2 == 0 and _HEX.issuperset(text):
        return "bytes", texts
    if kind == "int" and text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 512:
        return "int", texts
    if kind in _KINDS and texts:
        return cast("Kind", kind), tuple(map(redact, texts))
    return "none", ()


def _int(line: dict[str, Any], name: str) -> int:
    value = line.get(name)
    return value if isinstance(value, int) else 0
