"""Values that the agent read past the wire: as a tape has them, and how a replay's differ. Knows no file and no clock.

The n-th read of a name in a lane is compared with the n-th on the tape; further ones with the last, because how often
a program polls is not what a replay has to show.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tapeproxy.tapes.explain import Difference, shorten
from tapeproxy.tapes.records import Value

LIMIT = 256 * 1024
"""Content longer than this is on no tape."""
_SHOWN = 4
_WORDS = {"listing": "folder", "scan": "folder", "stat": "state of", "pipe": "output", "exit": "end of", "pid": ""}
_ONCE = ("process", "pipe", "exit")
"""What never stands for a later one: a program that was run again is another program."""

type Key = tuple[str, str, str]


@dataclass(slots=True)
class TapedValues:
    """The values of a tape, their contents put back; `take` gives the one to compare with."""

    values: list[Value]
    _waiting: dict[Key, list[Value]] = field(init=False)
    _taken: Counter[Key] = field(default_factory=Counter[Key])
    _by_number: dict[tuple[str, int], Value] = field(init=False)

    def __post_init__(self) -> None:
        self._waiting = defaultdict(list)
        for value in self.values:
            self._waiting[value.lane, value.what, value.name].append(value)
        self._by_number = {(value.lane, value.n): value for value in self.values}

    def take(self, now: Value) -> Value | None:
        """The taped value that this one should equal."""
        key = (now.lane, now.what, now.name)
        waiting, number = self._waiting.get(key, []), self._taken[key]
        self._taken[key] += 1
        if number < len(waiting):
            return waiting[number]
        return waiting[-1] if waiting and now.what not in _ONCE else None

    def numbered(self, lane: str, n: int) -> Value | None:
        """The value of this number in its lane."""
        return self._by_number.get((lane, n))


def with_contents(values: Iterable[Value]) -> Iterator[Value]:
    """The values with the contents that a tape holds once for all of the same digest."""
    from dataclasses import replace

    contents: dict[str, bytes] = {}
    for value in values:
        if value.content is not None and value.digest is not None:
            contents[value.digest] = value.content
        elif value.digest is not None and (value.length or 0) <= LIMIT and value.digest in contents:
            value = replace(value, content=contents[value.digest])
        yield value


def describe(value: Value) -> str:
    """What was read, and by which line: for the head of a drift."""
    where = f" at {value.where}" if value.where else ""
    return f"{value.what} {value.name} in lane {value.lane}{where}"


def differences(taped: Value, now: Value) -> tuple[Difference, ...]:
    """How a value differs from the taped one; empty when what the agent got is the same."""
    if taped.error != now.error:
        return (Difference("outcome", taped.error or "found", now.error or "found"),)
    if taped.error is not None:
        return ()
    match taped.what:
        case "stat":
            return tuple(_stat_differences(taped.data, now.data))
        case "scan":
            return tuple(_content_differences(_without_state(taped), _without_state(now)))
        case "exit":
            return tuple(_fact_differences(taped.data, now.data, ("returncode",)))
        case "pid" | "process":
            return ()
        case _:
            return tuple(_content_differences(taped, now))


def _content_differences(taped: Value, now: Value) -> Iterator[Difference]:
    if taped.content is not None and now.content is not None:
        if taped.content != now.content:
            yield from _line_differences(taped, now)
    elif (taped.length, taped.digest) != (now.length, now.digest):
        yield Difference("content", f"{taped.length} bytes, digest {taped.digest}", f"{now.length} bytes, {now.digest}")


def _line_differences(taped: Value, now: Value) -> Iterator[Difference]:
    was, is_ = _lines(taped), _lines(now)
    shown = 0
    for at in range(max(len(was), len(is_))):
        old, new = (lines[at] if at < len(lines) else None for lines in (was, is_))
        if old != new:
            yield Difference(f"line {at + 1}", old, new)
            shown += 1
            if shown == _SHOWN:
                return


def _lines(value: Value) -> list[str]:
    assert value.content is not None
    if value.what in ("listing", "scan"):
        try:
            return [json.dumps(item) for item in json.loads(value.content)]
        except (ValueError, TypeError):
            pass
    return [shorten(line) for line in value.content.decode(errors="backslashreplace").splitlines()]


def _without_state(value: Value) -> Value:
    from dataclasses import replace

    if value.content is None:
        return value
    try:
        names = [item[:2] for item in json.loads(value.content)]
    except (ValueError, TypeError):
        return value
    return replace(value, content=json.dumps(names).encode())


def _stat_differences(taped: dict[str, Any], now: dict[str, Any]) -> Iterator[Difference]:
    kinds = [data.get("mode", 0) >> 12 for data in (taped, now)]
    asked = taped.get("asked", "all")
    if kinds[0] != kinds[1]:
        yield Difference("type", oct(kinds[0]), oct(kinds[1]))
    elif kinds[0] == 0o10 and asked in ("size", "all"):
        yield from _fact_differences(taped, now, ("size",))
    if asked == "mtime":
        yield from _fact_differences(taped, now, ("mtime",))


def _fact_differences(taped: dict[str, Any], now: dict[str, Any], names: Iterable[str]) -> Iterator[Difference]:
    for name in names:
        if taped.get(name) != now.get(name):
            yield Difference(name, str(taped.get(name)), str(now.get(name)))
